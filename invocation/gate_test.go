package invocation_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

func TestGateOpensOnceAndClosesForGood(t *testing.T) {
	g, err := invocation.NewGate(&fakeDecider{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, inv := t.Context(), ratelimit.Invocation{Function: "f"}

	if _, err := g.Decide(ctx, inv); !errors.Is(err, invocation.ErrNotReady) || g.Ready() {
		t.Fatalf("shut: err %v, ready %v", err, g.Ready())
	}
	g.Open()
	if _, err := g.Decide(ctx, inv); err != nil || !g.Ready() {
		t.Fatalf("open: err %v, ready %v", err, g.Ready())
	}
	for range 2 {
		if err := g.Close(ctx); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	g.Open()
	if _, err := g.Decide(ctx, inv); !errors.Is(err, invocation.ErrClosed) || g.Ready() {
		t.Fatalf("closed: err %v, ready %v", err, g.Ready())
	}
	if n := g.InFlight(); n != 0 {
		t.Fatalf("%d in flight at the end", n)
	}
}

func TestGateNeedsADecider(t *testing.T) {
	if _, err := invocation.NewGate(nil); err == nil {
		t.Fatal("a gate before nothing")
	}
}

// Close waits for the decisions that were let in, and no longer than it may.
func TestGateCloseWaitsForWhatIsInFlight(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	g := openGate(t, &fakeDecider{answer: func(context.Context, ratelimit.Invocation) (ratelimit.Decision, error) {
		close(entered)
		<-release
		return ratelimit.Decision{Outcome: ratelimit.Admitted}, nil
	}})
	decided := make(chan error, 1)
	go func() {
		_, err := g.Decide(context.Background(), ratelimit.Invocation{Function: "f"})
		decided <- err
	}()
	<-entered

	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Close(impatient); !errors.Is(err, context.Canceled) {
		t.Fatalf("close with a decision in flight: %v", err)
	}
	if n := g.InFlight(); n != 1 {
		t.Fatalf("%d in flight, want 1", n)
	}
	close(release)
	if err := g.Close(t.Context()); err != nil {
		t.Fatalf("close afterwards: %v", err)
	}
	if err := <-decided; err != nil {
		t.Fatalf("the decision that was let in: %v", err)
	}
}

func TestGateRefusesWhatCannotBeDecided(t *testing.T) {
	good := ratelimit.Invocation{Account: "acme", Function: "f", Version: "v", Subject: "kim", Cost: 1}
	with := func(change func(*ratelimit.Invocation)) ratelimit.Invocation {
		inv := good
		change(&inv)
		return inv
	}
	long := strings.Repeat("x", invocation.MaxIdentifierBytes+1)
	for _, c := range []struct {
		name  string
		inv   ratelimit.Invocation
		field string // empty: let in
	}{
		{"complete", good, ""},
		{"no subject", with(func(i *ratelimit.Invocation) { i.Subject = "" }), ""},
		{"a look", with(func(i *ratelimit.Invocation) { i.Cost = 0 }), ""},
		{"the largest cost", with(func(i *ratelimit.Invocation) { i.Cost = counter.MaxUnits }), ""},
		{"the longest subject", with(func(i *ratelimit.Invocation) { i.Subject = long[1:] }), ""},
		{"letters of the world", with(func(i *ratelimit.Invocation) { i.Subject = "Ærøskøbing/日本" }), ""},
		{"separators", with(func(i *ratelimit.Invocation) { i.Subject = "a:b.c/d|e=f*>" }), ""},

		{"no function", with(func(i *ratelimit.Invocation) { i.Function = "" }), "function"},
		{"long account", with(func(i *ratelimit.Invocation) { i.Account = long }), "account"},
		{"long function", with(func(i *ratelimit.Invocation) { i.Function = long }), "function"},
		{"long version", with(func(i *ratelimit.Invocation) { i.Version = long }), "version"},
		{"long subject", with(func(i *ratelimit.Invocation) { i.Subject = long }), "subject"},
		{"line feed", with(func(i *ratelimit.Invocation) { i.Account = "a\nb" }), "account"},
		{"nul", with(func(i *ratelimit.Invocation) { i.Version = "\x00" }), "version"},
		{"delete", with(func(i *ratelimit.Invocation) { i.Function = "f\x7f" }), "function"},
		{"control beyond ASCII", with(func(i *ratelimit.Invocation) { i.Subject = "a\u0085b" }), "subject"},
		{"not UTF-8", with(func(i *ratelimit.Invocation) { i.Subject = "kim\xff" }), "subject"},
		{"half a letter", with(func(i *ratelimit.Invocation) { i.Account = "\xe6\x97" }), "account"},
		{"negative cost", with(func(i *ratelimit.Invocation) { i.Cost = -1 }), "cost"},
		{"absurd cost", with(func(i *ratelimit.Invocation) { i.Cost = counter.MaxUnits + 1 }), "cost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := &fakeDecider{}
			_, err := openGate(t, fake).Decide(t.Context(), c.inv)
			var fault *ratelimit.FieldError
			switch {
			case c.field == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case c.field == "":
				if got, _ := fake.last(); got != c.inv {
					t.Fatalf("decided %+v, want %+v", got, c.inv)
				}
			case !errors.As(err, &fault) || fault.Field != c.field || !errors.Is(err, ratelimit.ErrInvalid):
				t.Fatalf("err %v, want one of field %q", err, c.field)
			default:
				if got, asked := fake.last(); asked {
					t.Fatalf("asked about %+v all the same", got)
				}
			}
		})
	}
}

func TestGateCountsDecisions(t *testing.T) {
	exact := &ratelimit.Policy{Consistency: ratelimit.Exact}
	shadow := &ratelimit.Policy{Shadow: true}
	reg := prometheus.NewRegistry()
	var next func() (ratelimit.Decision, error)
	g := openGate(t, &fakeDecider{answer: func(context.Context, ratelimit.Invocation) (ratelimit.Decision, error) {
		return next()
	}}, invocation.WithRegisterer(reg))

	for _, d := range []ratelimit.Decision{
		{Outcome: ratelimit.Admitted, Remaining: ratelimit.Unlimited},
		{Outcome: ratelimit.Admitted, Policy: exact},
		{Outcome: ratelimit.Denied, Tier: ratelimit.Account, Policy: exact},
		{Outcome: ratelimit.Denied, Tier: ratelimit.Subject, Policy: shadow, Degraded: true},
		{Outcome: ratelimit.Impossible, Tier: ratelimit.Total, Policy: exact},
	} {
		next = func() (ratelimit.Decision, error) { return d, nil }
		if _, err := g.Decide(t.Context(), ratelimit.Invocation{Function: "f"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		&ratelimit.FieldError{Field: "account", Reason: "is required"},
		ratelimit.ErrStopped, context.Canceled, errors.New("a fault of ours"),
	} {
		next = func() (ratelimit.Decision, error) { return ratelimit.Decision{}, err }
		if _, got := g.Decide(t.Context(), ratelimit.Invocation{Function: "f"}); !errors.Is(got, err) {
			t.Fatalf("err %v, want %v", got, err)
		}
	}
	if _, err := g.Decide(t.Context(), ratelimit.Invocation{}); err == nil {
		t.Fatal("let in without a function")
	}

	want := map[[3]string]float64{
		{"admitted", "none", "none"}: 1, {"admitted", "none", "exact"}: 1,
		{"denied", "account", "exact"}: 1, {"shadowed", "subject", "leased"}: 1,
		{"impossible", "total", "exact"}: 1,
		{"invalid", "none", "none"}:      2, {"refused", "none", "none"}: 1,
		{"canceled", "none", "none"}: 1, {"failed", "none", "none"}: 1,
	}
	for series, value := range gather(t, reg, "headgate_decisions_total") {
		key := [3]string{series["outcome"], series["tier"], series["mode"]}
		if value != want[key] {
			t.Errorf("decisions %v = %v, want %v", key, value, want[key])
		}
		delete(want, key)
	}
	if len(want) != 0 {
		t.Errorf("series that are missing: %v", want)
	}
	for series, value := range gather(t, reg, "headgate_degraded_decisions_total") {
		if (series["outcome"] == "shadowed") != (value == 1) {
			t.Errorf("degraded %v = %v", series, value)
		}
	}
}

func TestMetricNamesAreLinted(t *testing.T) {
	reg := prometheus.NewRegistry()
	openGate(t, &fakeDecider{}, invocation.WithRegisterer(reg))
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) != 0 {
		t.Fatalf("err %v, problems %v", err, problems)
	}
}

// gather reads the values of one counter by its labels.
func gather(t *testing.T, reg *prometheus.Registry, name string) func(func(map[string]string, float64) bool) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func(map[string]string, float64) bool) {
		for _, f := range families {
			if f.GetName() != name {
				continue
			}
			for _, m := range f.GetMetric() {
				labels := map[string]string{}
				for _, l := range m.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				if !yield(labels, m.GetCounter().GetValue()) {
					return
				}
			}
		}
	}
}

func TestGateAddsNoAllocation(t *testing.T) {
	d := allocFree{}
	g := openGate(t, d)
	ctx := t.Context()
	inv := ratelimit.Invocation{Account: "acme", Function: "f", Version: "v", Subject: "kim", Cost: 1}
	if n := testing.AllocsPerRun(1000, func() { _, _ = g.Decide(ctx, inv) }); n != 0 {
		t.Fatalf("%v allocations per decision, want none", n)
	}
}

func BenchmarkGate(b *testing.B) {
	g, err := invocation.NewGate(allocFree{})
	if err != nil {
		b.Fatal(err)
	}
	g.Open()
	inv := ratelimit.Invocation{Account: "acme", Function: "f", Version: "v", Subject: "kim", Cost: 1}
	b.ReportAllocs()
	for b.Loop() {
		_, _ = g.Decide(b.Context(), inv)
	}
}

// allocFree admits everything and costs nothing.
type allocFree struct{}

func (allocFree) Decide(context.Context, ratelimit.Invocation) (ratelimit.Decision, error) {
	return ratelimit.Decision{Outcome: ratelimit.Admitted}, nil
}

func (allocFree) Standings(context.Context, ratelimit.Invocation) []ratelimit.Standing { return nil }
