package kvstore

import (
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/headgate-io/headgate/ratelimit"
)

// Module provides a [*Store], the same as a [ratelimit.Store], and its clock as
// a [ratelimit.Clock]. It asks for a [Config] and takes a logger, a registerer
// and the string named "version" where they are provided. The store is started
// and stopped with the application.
var Module = fx.Module("kvstore",
	fx.Provide(
		provide,
		func(s *Store) ratelimit.Store { return s },
		func(s *Store) ratelimit.Clock { return s.Clock() },
	),
)

// Params is what [Module] asks of the application.
type Params struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    Config
	Log       *slog.Logger          `optional:"true"`
	Metrics   prometheus.Registerer `optional:"true"`
	Version   string                `name:"version" optional:"true"`
}

// provide joins New to the lifecycle; everything here can be done by hand.
func provide(p Params) (*Store, error) {
	opts := []Option{WithRegisterer(p.Metrics), WithVersion(p.Version)}
	if p.Log != nil {
		opts = append(opts, WithLogger(p.Log))
	}
	s, err := New(p.Config, opts...)
	if err != nil {
		return nil, err
	}
	p.Lifecycle.Append(fx.StartStopHook(s.Start, s.Stop))
	return s, nil
}
