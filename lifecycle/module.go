package lifecycle

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
)

// Module provides a [*Node] that starts joining with the application and
// drains when the application stops. It needs a Config, a *slog.Logger and a
// prometheus.Registerer; checks come from whoever provides them.
var Module = fx.Module("lifecycle", fx.Provide(provide))

// Params is what [Module] asks of the application. Checks are in built-in
// types, so that who provides them need not import this package.
type Params struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    Config
	Log       *slog.Logger
	Metrics   prometheus.Registerer

	// Checks is the probes of readiness by name.
	Checks []map[string]func(context.Context) error `group:"headgate.readiness"`
	// Sticky, Degraded and Observe are those of [WithSticky], [WithDegraded]
	// and [WithObserver].
	Sticky   func() bool `name:"headgate.sticky" optional:"true"`
	Degraded func() bool `name:"headgate.degraded" optional:"true"`
	Observe  func(State) `optional:"true"`
}

// provide only joins New to the application; everything here can be done by
// hand.
func provide(p Params) (*Node, error) {
	opts := []Option{WithLogger(p.Log), WithRegisterer(p.Metrics)}
	if p.Sticky != nil {
		opts = append(opts, WithSticky(p.Sticky))
	}
	if p.Degraded != nil {
		opts = append(opts, WithDegraded(p.Degraded))
	}
	if p.Observe != nil {
		opts = append(opts, WithObserver(p.Observe))
	}
	n, err := New(p.Config, gather(p.Checks), opts...)
	if err != nil {
		return nil, err
	}
	p.Lifecycle.Append(fx.StartStopHook(n.Start, n.Stop))
	return n, nil
}

// gather puts checks into the order of their names, so that /readyz lists them
// alike on every node.
func gather(groups []map[string]func(context.Context) error) []Check {
	var checks []Check
	for _, group := range groups {
		for _, name := range slices.Sorted(maps.Keys(group)) {
			checks = append(checks, Check{Name: name, Probe: group[name]})
		}
	}
	slices.SortStableFunc(checks, func(a, b Check) int { return cmp.Compare(a.Name, b.Name) })
	return checks
}
