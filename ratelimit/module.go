package ratelimit

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
)

// Module provides a [*Limiter] and the [*Keyring] it uses. It needs a [Store], a
// [Clock], a [Finder], a [Config] and a *slog.Logger. It starts nothing: the
// application starts the limiter once the store has been joined, and stops it
// before the store, with a bound of its own.
var Module = fx.Module("ratelimit", fx.Provide(NewKeyring, provide))

// Params is what [Module] asks of the application.
type Params struct {
	fx.In

	Store      Store
	Clock      Clock
	Finder     Finder
	Keys       *Keyring
	Config     Config
	Log        *slog.Logger
	Registerer prometheus.Registerer `optional:"true"`
	Nodes      NodeCount             `optional:"true"`
}

// NodeCount tells how many nodes share the counters, this one among them.
type NodeCount func() int

func provide(p Params) (*Limiter, error) {
	opts := []Option{WithLogger(p.Log), WithRegisterer(p.Registerer)}
	if p.Nodes != nil {
		opts = append(opts, WithNodes(p.Nodes))
	}
	return New(p.Store, p.Clock, p.Finder, p.Keys, p.Config, opts...)
}
