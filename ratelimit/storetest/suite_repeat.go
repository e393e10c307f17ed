package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// repeatCases: who sees what, and when.
func repeatCases() []Case {
	return []Case{
		{"a refresh charges nothing and sees the others", testRefresh},
		{"a repeated exchange is answered and not applied again", testRepeat},
		{"an exchange in doubt is applied once, and its grant is told", testDoubt},
		{"a grant's state belongs to its receiver", testOwnership},
	}
}

func testRefresh(t *testing.T, env Env) {
	a := newActor(t, env, sliding(1000, time.Hour))
	a.left(a.refresh(), 1000, "a counter that nobody used")
	for i := range 10 {
		writer, reader := a.other(i), a.other(i+1)
		reader.refresh() // remembers what is now to become old
		writer.take(1)
		if err := wait(t.Context(), env.Stale); err != nil {
			t.Fatal(err)
		}
		reader.left(reader.refresh(), 1000-int64(i)-1, "right after another node's write")
	}
	for range 20 {
		if g := a.refresh(); g.Units != 0 {
			t.Fatalf("a refresh was granted %d units", g.Units)
		}
	}
	a.left(a.refresh(), 990, "after twenty refreshes")
}

func testRepeat(t *testing.T, env Env) {
	a := newActor(t, env, sliding(100, time.Hour))
	send := func(x ratelimit.Exchange) ratelimit.Grant {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		g, err := a.store.Exchange(ctx, x)
		if err != nil {
			t.Fatalf("exchange: %v", err)
		}
		return g
	}
	x := a.fill(need(7, 1))
	first, again := send(x), send(x)
	if again.Units != first.Units || again.Until != first.Until {
		t.Fatalf("answered %d until %v, the second time %d until %v", first.Units, first.Until, again.Units, again.Until)
	}
	a.left(a.refresh(), 93, "after the same exchange twice")

	back := a.fill(ratelimit.Exchange{Returns: []ratelimit.Return{{Units: 2, Until: first.Until}}})
	send(back)
	send(back)
	a.left(a.refresh(), 95, "after the same return twice")

	same := x
	same.Serial = a.serial.Add(1)
	send(same)
	a.left(a.refresh(), 88, "after the same wish with another serial")
	same.Node += "-other"
	send(same)
	a.left(a.refresh(), 81, "after another node's with the same serial")
}

// testDoubt asks about an exchange that was applied, and about one that never
// arrived. A repeat may ask for less than the first did.
func testDoubt(t *testing.T, env Env) {
	a := newActor(t, env, sliding(100, time.Hour))
	send := func(x ratelimit.Exchange) ratelimit.Grant {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		g, err := a.store.Exchange(ctx, x)
		if err != nil {
			t.Fatalf("exchange: %v", err)
		}
		return g
	}
	issued := env.Clock.Now().Add(-env.Clock.Error())
	applied := a.fill(need(7, 1))
	first := send(applied)
	applied.Needs, applied.Issued = nil, issued
	if again := send(applied); again.Units != first.Units || again.Until != first.Until {
		t.Fatalf("granted %d until %v, asked again it was %d until %v", first.Units, first.Until, again.Units, again.Until)
	}
	a.left(a.refresh(), 93, "after an exchange that was applied and asked about")

	lost := a.fill(ratelimit.Exchange{Returns: []ratelimit.Return{{Units: 2, Until: first.Until}}})
	lost.Issued = issued
	send(lost)
	send(lost)
	// What is asked about is settled past the counter's owner, as another
	// node's exchange is.
	if err := wait(t.Context(), env.Stale); err != nil {
		t.Fatal(err)
	}
	a.left(a.refresh(), 95, "after a return that only arrived when it was asked about, twice")
}

func testOwnership(t *testing.T, env Env) {
	a := newActor(t, env, sliding(10, time.Hour))
	for range 3 {
		g := a.take(1)
		g.State.Reset()
		g.State.Charge(a.rates, 10, g.At, g.At)
	}
	g := a.refresh()
	g.State.Charge(a.rates, 10, g.At, g.At)
	a.left(a.refresh(), 7, "after the receivers spoilt their states")
}

// faultCases: what a caller who gives up does to the others, and to itself.
func faultCases() []Case {
	return []Case{
		{"who gives up does not hurt who waits", testCancelled},
		{"a context that has ended is named in the error", testEndedContext},
	}
}

func testCancelled(t *testing.T, env Env) {
	const limit, waiters = 200, 24
	a := newActor(t, env, sliding(limit, time.Hour))
	type result struct {
		units int64
		err   error
		gone  bool
	}
	results := make(chan result, waiters)
	for i := range waiters {
		b := a.other(i)
		ctx, cancel := context.WithCancel(t.Context())
		gone := i%3 == 0
		go func() {
			defer cancel()
			g, err := b.try(ctx, need(1, 1))
			results <- result{g.Units, err, gone}
		}()
		if gone {
			cancel()
		}
	}
	var granted int64
	for range waiters {
		r := <-results
		switch {
		case r.err == nil:
			granted += r.units
		case !r.gone:
			t.Errorf("one who waited: %v", r.err)
		case !errors.Is(r.err, context.Canceled) && !errors.Is(r.err, ratelimit.ErrUnknown):
			t.Errorf("one who gave up: %v, want context.Canceled or ErrUnknown", r.err)
		}
	}
	if err := wait(t.Context(), env.Stale); err != nil {
		t.Fatal(err)
	}
	g := a.refresh()
	left := g.State.Available(a.rates, g.At)
	if spent := limit - left; spent < granted || spent > waiters {
		t.Errorf("%d units charged, want %d that were granted to %d that were asked for", spent, granted, waiters)
	}
}

func testEndedContext(t *testing.T, env Env) {
	a := newActor(t, env, sliding(10, time.Hour))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancelLate := context.WithTimeout(t.Context(), -time.Second)
	defer cancelLate()
	for _, c := range []struct {
		ctx  context.Context
		want error
	}{{ended, context.Canceled}, {late, context.DeadlineExceeded}} {
		_, err := a.store.Exchange(c.ctx, a.fill(need(1, 1)))
		if !errors.Is(err, c.want) {
			t.Fatalf("%v, want %v", err, c.want)
		}
		checkWords(t, a.key, err)
	}
	a.left(a.refresh(), 10, "after exchanges that were never sent")
}
