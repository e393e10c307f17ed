package invocation_test

import (
	"context"
	"net/http"
	"testing"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// A platform's own graph: the front doors open and close with it, and its own
// paths are served beside theirs.
func TestModule(t *testing.T) {
	var doors *invocation.Doors
	clock := storetest.NewClock()
	cfg := ratelimit.DefaultConfig()
	cfg.Node = "node"
	limiter, err := ratelimit.New(storetest.NewMemory(clock), clock, policies{}, ratelimit.NewKeyring(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	app := fxtest.New(t,
		fx.NopLogger,
		fx.Supply(loopback(), limiter),
		invocation.Module,
		fx.Invoke(func(g *invocation.Gate, mux *http.ServeMux) {
			fromRequest := func(*http.Request) ratelimit.Invocation { return ratelimit.Invocation{Function: "f"} }
			mux.Handle("/invoke/", g.Middleware(fromRequest)(http.NotFoundHandler()))
			g.Open()
		}),
		fx.Populate(&doors),
	)
	app.RequireStart()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+doors.HTTP.Addr().String()+"/invoke/f", nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil || resp.StatusCode != http.StatusNotFound || resp.Header.Get("Content-Type") == "application/json" {
		t.Fatalf("the platform's own handler: %v, %v", resp, err)
	}
	_ = resp.Body.Close()
	app.RequireStop()
	if _, err := doors.Gate.Decide(context.Background(), ratelimit.Invocation{Function: "f"}); err == nil {
		t.Fatal("the gate stays open after the application")
	}
}
