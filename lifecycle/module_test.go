package lifecycle_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/headgate-io/headgate/lifecycle"
)

// A platform that supplies values and checks gets a node that lives with its
// application.
func TestModule(t *testing.T) {
	t.Parallel()
	ready := make(chan struct{})
	var node *lifecycle.Node
	app := fxtest.New(t,
		fx.Supply(lifecycle.DefaultConfig(), slog.New(slog.DiscardHandler)),
		fx.Provide(
			func() prometheus.Registerer { return prometheus.NewPedanticRegistry() },
			fx.Annotate(func() map[string]func(context.Context) error {
				return map[string]func(context.Context) error{"store": func(context.Context) error { return nil }}
			}, fx.ResultTags(`group:"headgate.readiness"`)),
			func() func(lifecycle.State) {
				return func(s lifecycle.State) {
					if s.Phase == lifecycle.Ready {
						close(ready)
					}
				}
			},
		),
		lifecycle.Module,
		fx.Populate(&node),
	)
	app.RequireStart()
	<-ready
	app.RequireStop()
	if s := node.State(); s.Phase != lifecycle.Stopped {
		t.Errorf("phase %s after the application stopped", s.Phase)
	}
}
