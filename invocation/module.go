package invocation

import (
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/headgate-io/headgate/ratelimit"
)

// Module provides [*Gate], [*GRPCServer], [*HTTPServer], [*Doors] and the
// [*http.ServeMux] that the HTTP front door serves, over a
// [*ratelimit.Limiter]. It takes a [Config], a logger and a registerer where
// the application supplies them. The front doors open and close with the
// application. The gate opens, gRPC health says that it serves, and HTTP keeps
// connections when a lifecycle says that the node is ready.
var Module = fx.Module("invocation",
	fx.Provide(
		func(l *ratelimit.Limiter) Decider { return l },
		provideGate, provideGRPC, provideHTTP, provideDoors, http.NewServeMux,
		fx.Annotate(onReady, fx.ResultTags(`group:"headgate.ready"`)),
	),
	fx.Invoke(hook),
)

// collaborators are what an application may supply.
type collaborators struct {
	fx.In

	Config     Config                `optional:"true"`
	Logger     *slog.Logger          `optional:"true"`
	Registerer prometheus.Registerer `optional:"true"`
}

func (c collaborators) config() Config {
	if c.Config == (Config{}) {
		return DefaultConfig()
	}
	return c.Config
}

func (c collaborators) options() []Option {
	var opts []Option
	if c.Logger != nil {
		opts = append(opts, WithLogger(c.Logger))
	}
	if c.Registerer != nil {
		opts = append(opts, WithRegisterer(c.Registerer))
	}
	return opts
}

func provideGate(c collaborators, d Decider) (*Gate, error) { return NewGate(d, c.options()...) }

func provideGRPC(c collaborators, g *Gate) (*GRPCServer, error) {
	return NewGRPCServer(c.config(), g, c.options()...)
}

func provideHTTP(c collaborators, g *Gate, mux *http.ServeMux) (*HTTPServer, error) {
	return NewHTTPServer(c.config(), NewHandler(g, mux), c.options()...)
}

func provideDoors(g *Gate, rpc *GRPCServer, web *HTTPServer) *Doors {
	return &Doors{Gate: g, GRPC: rpc, HTTP: web}
}

func hook(lc fx.Lifecycle, d *Doors) { lc.Append(fx.Hook{OnStart: d.Start, OnStop: d.Stop}) }

// onReady runs before a state shows, so that the gate is open when the node says
// that it is ready.
func onReady(g *Gate, rpc *GRPCServer, web *HTTPServer) func(ready bool) {
	return func(ready bool) {
		if ready {
			g.Open()
		}
		rpc.SetServing(ready)
		web.SetServing(ready)
	}
}
