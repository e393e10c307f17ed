package invocation

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// Option swaps a collaborator of a [Gate], a handler or a server; settings
// belong in [Config]. Each constructor takes from it what it needs.
type Option func(*options)

type options struct {
	logger     *slog.Logger
	registerer prometheus.Registerer
}

// WithLogger logs to l; without it nothing is logged.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// WithRegisterer shows the metrics of a [Gate] on reg; without it they stay
// private.
func WithRegisterer(reg prometheus.Registerer) Option {
	return func(o *options) { o.registerer = reg }
}

func collect(opts []Option) options {
	o := options{logger: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		opt(&o)
	}
	return o
}
