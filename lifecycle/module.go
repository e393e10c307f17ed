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
// drains when the application stops. It needs a Config and takes a *slog.Logger
// and a prometheus.Registerer where they are provided; checks, and whoever wants
// to hear of readiness and phases, come from the application's other modules.
var Module = fx.Module("lifecycle", fx.Provide(provide), fx.Invoke(func(*Node) {}))

// Params is what [Module] asks of the application. Checks are in built-in
// types, so that who provides them need not import this package.
type Params struct {
	fx.In

	Lifecycle fx.Lifecycle
	Config    Config
	Log       *slog.Logger          `optional:"true"`
	Metrics   prometheus.Registerer `optional:"true"`

	// Checks is the probes of readiness by name.
	Checks []map[string]func(context.Context) error `group:"headgate.readiness"`
	// Ready hears of every new state whether the node is ready, and Phases of
	// every new phase. They are called as the function of [WithObserver] is.
	Ready  []func(ready bool)   `group:"headgate.ready"`
	Phases []func(phase string) `group:"headgate.phase"`
	// Sticky, Degraded and Observe are those of [WithSticky], [WithDegraded]
	// and [WithObserver].
	Sticky   func() bool `name:"headgate.sticky" optional:"true"`
	Degraded func() bool `name:"headgate.degraded" optional:"true"`
	Observe  func(State) `optional:"true"`
}

// provide only joins New to the application; everything here can be done by
// hand.
func provide(p Params) (*Node, error) {
	opts := []Option{WithRegisterer(p.Metrics), WithObserver(p.observer())}
	if p.Log != nil {
		opts = append(opts, WithLogger(p.Log))
	}
	if p.Sticky != nil {
		opts = append(opts, WithSticky(p.Sticky))
	}
	if p.Degraded != nil {
		opts = append(opts, WithDegraded(p.Degraded))
	}
	n, err := New(p.Config, gather(p.Checks), opts...)
	if err != nil {
		return nil, err
	}
	p.Lifecycle.Append(fx.StartStopHook(n.Start, n.Stop))
	return n, nil
}

// observer tells everybody of a new state.
func (p Params) observer() func(State) {
	phase := Starting
	return func(s State) {
		for _, tell := range p.Ready {
			tell(s.Ready)
		}
		if s.Phase != phase {
			phase = s.Phase
			for _, tell := range p.Phases {
				tell(phase.String())
			}
		}
		if p.Observe != nil {
			p.Observe(s)
		}
	}
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
