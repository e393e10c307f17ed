package policy

import (
	"context"
	"log/slog"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
)

// Module provides the [*Set] and, as the same value, a [ratelimit.Finder]. It
// needs a [Config]. Sources come from the group "policy-sources"; the file
// source is its own when Config.Path is set.
//
// For a lifecycle it provides the check "policies", and that a node stays in
// service without its store unless a policy would then have it deny everybody.
var Module = fx.Module("policy",
	fx.Provide(
		fx.Annotate(provideFile, fx.ResultTags(`group:"policy-sources,flatten"`)),
		provideSet,
		func(s *Set) ratelimit.Finder { return s },
		fx.Annotate(readiness, fx.ResultTags(`group:"headgate.readiness"`)),
		fx.Annotate(sticky, fx.ResultTags(`name:"headgate.sticky"`)),
	),
)

// Params is what [Module] asks of the application for the [Set].
type Params struct {
	fx.In

	Config  Config
	Sources []Source              `group:"policy-sources"`
	Log     *slog.Logger          `optional:"true"`
	Metrics prometheus.Registerer `optional:"true"`
}

func provideSet(p Params) (*Set, error) {
	opts := []Option{WithRegisterer(p.Metrics)}
	if p.Log != nil {
		opts = append(opts, WithLogger(p.Log))
	}
	return NewSet(p.Config, p.Sources, opts...)
}

// provideFile gives no source when there is no path.
func provideFile(lc fx.Lifecycle, cfg Config) ([]Source, error) {
	if cfg.Path == "" {
		return nil, nil
	}
	f, err := NewFileSource(cfg)
	if err != nil {
		return nil, err
	}
	// The set attaches when it is made, which is before any hook runs.
	lc.Append(fx.StartStopHook(f.Start, f.Stop))
	return []Source{f}, nil
}

func readiness(s *Set) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"policies": func(context.Context) error { return s.Loaded() },
	}
}

func sticky(s *Set) func() bool {
	return func() bool { return !s.DeniesWithoutStore() }
}
