package kvstore

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// Module provides a [*Store] as all that a limiter asks of one, the bucket's
// [*Policies] as a source of policies, and the [*Operator] that other nodes
// reach before the limiter leases anything. It asks for a [Config] and takes a
// logger, a registerer and the string named "version" where they are provided.
// The store and the policies are started and stopped with the application.
//
// For a lifecycle it provides the store's checks, and hears of its phases.
var Module = fx.Module("kvstore",
	fx.Provide(
		provide,
		func(s *Store) ratelimit.Store { return s },
		func(s *Store) ratelimit.Clock { return s.Clock() },
		func(s *Store) ratelimit.Membership { return s },
		func(s *Store) ratelimit.NodeCount { return s.Live },
		func(s *Store, l *ratelimit.Limiter) *Operator { return NewOperator(s, l) },
		providePolicies,
		fx.Annotate(func(o *Operator) ratelimit.Companion { return o }, fx.ResultTags(`group:"headgate.companions"`)),
		fx.Annotate(func(p *Policies) policy.Source { return p }, fx.ResultTags(`group:"policy-sources"`)),
		fx.Annotate(func(s *Store) string { return s.cfg.NodeName }, fx.ResultTags(`name:"headgate.node"`)),
		fx.Annotate(readiness, fx.ResultTags(`group:"headgate.readiness"`)),
		fx.Annotate(func(s *Store) func(string) { return s.SetPhase }, fx.ResultTags(`group:"headgate.phase"`)),
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

// providePolicies are started at once: they wait for the store by themselves.
func providePolicies(lc fx.Lifecycle, s *Store) *Policies {
	p := NewPolicies(s)
	lc.Append(fx.StartStopHook(p.Start, p.Stop))
	return p
}

// readiness is the store's checks by name.
func readiness(s *Store) map[string]func(context.Context) error {
	all := make(map[string]func(context.Context) error)
	for _, c := range s.Checks() {
		all[c.Name] = func(context.Context) error { return s.check(c.Name) }
	}
	return all
}

// check is how the store's check of this name stands now.
func (s *Store) check(name string) error {
	for _, c := range s.Checks() {
		if c.Name == name {
			return c.Err
		}
	}
	return fmt.Errorf("the store no longer checks %q", name)
}
