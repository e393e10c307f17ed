package ratelimit_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/ratelimit"
)

// Case 20: a million callers in one run. The node remembers as many as it was
// told to, the rest is decided by the store, and metrics do not grow.
func TestCase20_aMillionCallers(t *testing.T) {
	callers := 1_000_000
	if testing.Short() {
		callers = 50_000
	}
	clock := newWallClock()
	registry := prometheus.NewRegistry()
	cfg := ratelimit.DefaultConfig()
	cfg.Node, cfg.MaxCells = "node", 1000
	cfg.Attempt = 10 * time.Second // a stall of the machine is not the case here
	keys := ratelimit.NewKeyring()
	keys.SetSecret([]byte("secret"))
	p := policy(func(p *ratelimit.Policy) { p.Subject = rates(t, "3-M") })
	l, err := ratelimit.New(forgetful{clock}, clock, finderOf(p), keys, cfg, ratelimit.WithRegisterer(registry))
	if err != nil {
		t.Fatal(err)
	}
	series := func() (n int) {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			n += len(f.GetMetric())
		}
		return n
	}
	before := series()
	for i := range callers {
		d, err := l.Decide(t.Context(), ratelimit.Invocation{Account: "acme", Subject: strconv.Itoa(i), Function: "f", Version: "v", Cost: 1})
		if err != nil || !d.Allowed() || d.Degraded {
			t.Fatalf("caller %d: %+v, %v", i, d, err)
		}
	}
	if n := l.Cells(); n > cfg.MaxCells {
		t.Errorf("%d cells, want at most %d", n, cfg.MaxCells)
	}
	if n := l.Busy(); n > 2*cfg.MaxCells {
		t.Errorf("%d cells looked after, want no more than twice %d", n, cfg.MaxCells)
	}
	if after := series(); after != before {
		t.Errorf("%d metric series after, %d before", after, before)
	}
	if err := l.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}
