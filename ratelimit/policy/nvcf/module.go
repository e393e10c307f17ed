package nvcf

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/headgate-io/headgate/ratelimit/policy"
)

// Module adds a [*Source] to the group "policy-sources" when Config.Address is
// set. It needs a [Config].
var Module = fx.Module("policy/nvcf",
	fx.Provide(fx.Annotate(provide, fx.ResultTags(`group:"policy-sources,flatten"`))),
)

// Params is what [Module] asks of the application.
type Params struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    Config
	Log       *slog.Logger          `optional:"true"`
	Metrics   prometheus.Registerer `optional:"true"`
}

// provide gives no source when there is no address.
func provide(p Params) ([]policy.Source, error) {
	if p.Config.Address == "" {
		return nil, p.Config.Validate()
	}
	opts := []Option{WithRegisterer(p.Metrics)}
	if p.Log != nil {
		opts = append(opts, WithLogger(p.Log))
	}
	s, err := New(p.Config, opts...)
	if err != nil {
		return nil, err
	}
	p.Lifecycle.Append(fx.StartStopHook(s.Start, s.Stop))
	return []policy.Source{s}, nil
}
