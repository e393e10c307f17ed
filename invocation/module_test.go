package invocation_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// memoryLimiter is a limiter over a store in memory, without policies.
func memoryLimiter(t *testing.T) *ratelimit.Limiter {
	t.Helper()
	clock := storetest.NewClock()
	cfg := ratelimit.DefaultConfig()
	cfg.Node = "node"
	limiter, err := ratelimit.New(storetest.NewMemory(clock), clock, policies{}, ratelimit.NewKeyring(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return limiter
}

// A node that leaves serves on until its front doors close, and callers that
// keep their connection are told to make their next call elsewhere.
func TestModule_leaves(t *testing.T) {
	var doors *invocation.Doors
	var tellReady func(ready bool)
	app := fxtest.New(t,
		fx.NopLogger,
		fx.Supply(loopback(), memoryLimiter(t)),
		invocation.Module,
		fx.Invoke(fx.Annotate(func(all []func(ready bool)) { tellReady = all[0] }, fx.ParamTags(`group:"headgate.ready"`))),
		fx.Populate(&doors),
	)
	app.RequireStart()
	t.Cleanup(app.RequireStop)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	for _, ready := range []bool{true, true, false, false} {
		tellReady(ready)
		resp, err := (&http.Client{Transport: transport}).Post(
			"http://"+doors.HTTP.Addr().String()+"/v1/check", "application/json", strings.NewReader(acmeBody))
		if err != nil {
			t.Fatal(err)
		}
		if body := text(t, resp); resp.StatusCode != http.StatusOK || resp.Close == ready {
			t.Errorf("ready %v: %d %s, connection to be closed: %v", ready, resp.StatusCode, body, resp.Close)
		}
		_ = resp.Body.Close()
	}
}

// A platform's own graph: the front doors open and close with it, and its own
// paths are served beside theirs.
func TestModule(t *testing.T) {
	var doors *invocation.Doors
	app := fxtest.New(t,
		fx.NopLogger,
		fx.Supply(loopback(), memoryLimiter(t)),
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
