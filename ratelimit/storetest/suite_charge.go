package storetest

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// chargeCases: what an exchange charges.
func chargeCases() []Case {
	return []Case{
		{"many nodes at once never get more than the limit, and all of it", testAtomic},
		{"costs are served in order, and who does not fit is passed over", testOrder},
		{"at most a quarter of what is left is given ahead", testAhead},
		{"a denial charges nothing", testDenial},
		{"several rates all bind", testSeveralRates},
		{"counters do not touch each other", testIsolation},
		{"hand back, post and take in that order", testOneStep},
	}
}

// testAtomic offers a multiple of the limit from many goroutines on every node.
// Nothing expires while it runs, so what is granted is the limit exactly.
func testAtomic(t *testing.T, env Env) {
	const limit, workers, each = 60, 6, 20
	for name, rate := range everyAlgorithm(limit, 24*time.Hour) {
		first := newActor(t, env, rate)
		var granted atomic.Int64
		var wg sync.WaitGroup
		for w := range workers {
			a := first.other(w)
			wg.Go(func() {
				for i := range each {
					g, err := a.try(t.Context(), need(1+int64((w+i)%2), 1))
					if err != nil {
						t.Errorf("%s: exchange: %v", name, err)
						return
					}
					granted.Add(g.Units)
				}
			})
		}
		wg.Wait()
		if got := granted.Load(); got != limit {
			t.Errorf("%s: granted %d units of a limit of %d", name, got, limit)
		}
	}
}

func testOrder(t *testing.T, env Env) {
	a := newActor(t, env, sliding(9, time.Hour))
	g := a.do(ratelimit.Exchange{Needs: []ratelimit.Need{{Cost: 4, Count: 1}, {Cost: 6, Count: 2}, {Cost: 2, Count: 2}, {Cost: 1, Count: 5}}})
	if g.Units != 4+2+2+1 {
		t.Fatalf("granted %d, want 9: one of 4, none of 6, both of 2, one of 1", g.Units)
	}
	a.left(g, 0, "after the nine")
}

func testAhead(t *testing.T, env Env) {
	a := newActor(t, env, sliding(1000, time.Hour))
	steps := []struct {
		x    ratelimit.Exchange
		want int64
		why  string
	}{
		{ahead(5), 5, "as much as is wanted"},
		{ahead(5000), 248, "a quarter of 995"},
		{ratelimit.Exchange{Needs: []ratelimit.Need{{Cost: 1, Count: 600}}, Want: 5000, Life: time.Millisecond}, 636, "600 that wait and a quarter of the 147 behind them"},
		{need(1, 6), 6, "those who wait get what there is"},
		{ahead(5000), 26, "a quarter of 105"},
		{need(1, 16), 16, "those who wait again"},
		{ahead(5000), 0, "the last 63 are not given ahead"},
		{need(1, 70), 63, "the last ones go to those who wait"},
	}
	for _, s := range steps {
		if g := a.do(s.x); g.Units != s.want {
			t.Fatalf("granted %d, want %d: %s", g.Units, s.want, s.why)
		}
	}
}

func testDenial(t *testing.T, env Env) {
	for name, rate := range everyAlgorithm(3, time.Hour) {
		a := newActor(t, env, rate)
		spent := a.take(2)
		for i := range 4 {
			b := a.other(i)
			if g := b.do(need(2, 1)); g.Units != 0 {
				t.Fatalf("%s: granted %d where 1 was left and 2 were asked for", name, g.Units)
			}
		}
		g := a.refresh()
		a.left(g, 1, name+": after four denials")
		if !g.State.Equal(spent.State) {
			t.Fatalf("%s: a denial changed the counter from %+v to %+v", name, spent.State, g.State)
		}
		a.take(1)
	}
}

func testSeveralRates(t *testing.T, env Env) {
	a := newActor(t, env, sliding(10, time.Hour), sliding(4, time.Minute))
	if g := a.do(need(1, 9)); g.Units != 4 {
		t.Fatalf("granted %d, want the 4 of the stricter rate", g.Units)
	}
	long := a.under(a.rates[0])
	long.left(long.refresh(), 6, "the other rate was charged the same 4")
}

func testIsolation(t *testing.T, env Env) {
	base := newActor(t, env, sliding(5, time.Hour))
	base.take(5)
	for _, tail := range []string{"-", "_", "=", "/", "-a", "A", "a.b"} {
		near := base.other(0)
		near.key = base.key + ratelimit.Key(tail)
		near.left(near.refresh(), 5, "a counter whose key only begins like a spent one")
		near.take(2)
		near.left(near.refresh(), 3, "the near counter")
	}
	base.left(base.refresh(), 0, "the first counter")
}

// testOneStep: the units that come back and the debt both count before
// anything is taken.
func testOneStep(t *testing.T, env Env) {
	a := newActor(t, env, sliding(200, time.Hour))
	lease := a.do(ratelimit.Exchange{Needs: []ratelimit.Need{{Cost: 200, Count: 1}}})
	g := a.do(ratelimit.Exchange{
		Returns: []ratelimit.Return{{Units: 120, Until: lease.Until}},
		Posts:   []ratelimit.Post{{Units: 30, At: lease.At}},
		Needs:   []ratelimit.Need{{Cost: 1, Count: 5}},
		Want:    1000,
		Life:    time.Millisecond,
	})
	if g.Units != 5+21 {
		t.Fatalf("granted %d, want 5 and a quarter of the 85 left", g.Units)
	}
	a.left(g, 64, "200 - 200 + 120 - 30 - 26")
}
