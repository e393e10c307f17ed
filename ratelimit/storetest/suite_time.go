package storetest

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// timeCases: what time does to a counter.
func timeCases() []Case {
	return []Case{
		{"a lease ends when it must", testLeaseEnd},
		{"decisions carry the store's time", testStamp},
		{"a spent counter expires and is used again", testReuse},
		{"units that were returned are there again", testReturns},
		{"a post may exceed the limit", testPosts},
		{"changed rates keep what was spent", testChangedRates},
	}
}

func testLeaseEnd(t *testing.T, env Env) {
	cases := []struct {
		name string
		rate counter.Rate
		life time.Duration
		most time.Duration // after the decision
	}{
		{"as long as asked for", sliding(100, time.Hour), 80 * time.Millisecond, 80 * time.Millisecond},
		{"no longer than a slice", sliding(100, time.Second), time.Second, time.Second / counter.Slices * 2},
		{"not past a fixed window", counter.Rate{Units: 100, Period: time.Second, Algorithm: counter.Fixed}, time.Minute, time.Second},
		{"exact: within the slice", sliding(100, time.Second), 0, time.Second / counter.Slices * 2},
	}
	for _, c := range cases {
		a := newActor(t, env, c.rate)
		g := a.do(ratelimit.Exchange{Needs: []ratelimit.Need{{Cost: 1, Count: 1}}, Want: 10, Life: c.life})
		if g.Until < g.At || g.Until > g.At.Add(c.most) {
			t.Errorf("%s: until %v after the decision, want 0 to %v", c.name, g.Until.Sub(g.At), c.most)
		}
	}
}

// testStamp: the stamps are the store's clock, and go forward on every node.
func testStamp(t *testing.T, env Env) {
	first := newActor(t, env, sliding(1000, time.Hour))
	const slack = 250 * time.Millisecond // an exchange may wait for its turn
	var last counter.Instant
	for i := range 8 {
		before := env.Clock.Now()
		g := first.other(i).take(1)
		after := env.Clock.Now()
		if g.At < before.Add(-slack) || g.At > after.Add(slack) {
			t.Fatalf("decided at %v, want %v to %v", g.At.Time(), before.Time(), after.Time())
		}
		if g.At < last {
			t.Fatalf("decided at %v after a decision at %v", g.At.Time(), last.Time())
		}
		last = g.At
	}
}

// testReuse exhausts a counter of one second, waits for the instant that the
// state promises, and finds the full budget, twice over.
func testReuse(t *testing.T, env Env) {
	for name, rate := range everyAlgorithm(2, time.Second) {
		a := newActor(t, env, rate)
		for round := range 2 {
			b := a.other(round)
			b.take(2)
			g := b.do(need(2, 1))
			if g.Units != 0 {
				t.Fatalf("%s: round %d: granted %d of a spent budget", name, round, g.Units)
			}
			next, ok := g.State.NextAt(b.rates, g.At, 2)
			if !ok || next <= g.At {
				t.Fatalf("%s: round %d: next at %v, %v", name, round, next.Sub(g.At), ok)
			}
			if most := 2 * time.Second; next.Sub(g.At) > most {
				t.Fatalf("%s: round %d: full again after %v, want %v at most", name, round, next.Sub(g.At), most)
			}
			b.until(next.Add(5 * time.Millisecond))
			b.left(b.other(round+1).refresh(), 2, name+": after the promised instant")
		}
	}
}

func testReturns(t *testing.T, env Env) {
	for name, rate := range everyAlgorithm(100, 24*time.Hour) {
		a := newActor(t, env, rate)
		lease := a.do(ahead(10))
		if lease.Units != 10 {
			t.Fatalf("%s: %d units ahead, want 10", name, lease.Units)
		}
		back := func(units int64) ratelimit.Grant {
			return a.do(ratelimit.Exchange{Returns: []ratelimit.Return{{Units: units, Until: lease.Until}}})
		}
		a.left(back(4), 94, name+": after four came back")
		a.left(back(6), 100, name+": after all came back")
		a.left(back(6), 100, name+": what was not charged cannot come back")
		a.left(a.other(1).refresh(), 100, name+": seen by another node")
	}
}

func testPosts(t *testing.T, env Env) {
	for name, rate := range everyAlgorithm(10, 24*time.Hour) {
		a := newActor(t, env, rate)
		post := func(units int64) ratelimit.Grant {
			return a.do(ratelimit.Exchange{Posts: []ratelimit.Post{{Units: units, At: env.Clock.Now()}}})
		}
		a.left(post(4), 6, name+": four posted")
		a.left(post(9), 0, name+": thirteen posted")
		if g := a.do(need(1, 1)); g.Units != 0 {
			t.Fatalf("%s: granted %d beyond the limit", name, g.Units)
		}
		wider := rate
		wider.Units = 20
		b := a.under(wider)
		b.left(b.refresh(), 7, name+": nothing posted was dropped at the limit")
	}
}

func testChangedRates(t *testing.T, env Env) {
	for name, rate := range everyAlgorithm(10, 24*time.Hour) {
		a := newActor(t, env, rate)
		a.take(4)
		raised, lowered := rate, rate
		raised.Units, lowered.Units = 20, 3

		up := a.under(raised)
		up.left(up.refresh(), 16, name+": raised from 10 to 20")
		down := a.under(lowered)
		down.left(down.refresh(), 0, name+": lowered to 3, never negative")
		if g := down.do(need(1, 1)); g.Units != 0 {
			t.Fatalf("%s: granted %d under the lowered limit", name, g.Units)
		}
		a.left(a.refresh(), 6, name+": back at 10")

		added := a.under(rate, sliding(50, time.Hour))
		added.take(1)
		a.left(a.refresh(), 5, name+": a second rate beside it")
	}
}
