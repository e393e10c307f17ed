package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// operatorCases: what an operator does to a counter.
func operatorCases() []Case {
	return []Case{
		{"a reset forgets what was spent", testReset},
		{"extra units count in the current windows", testAdd},
	}
}

func testReset(t *testing.T, env Env) {
	for name, rate := range everyAlgorithm(10, 24*time.Hour) {
		a := newActor(t, env, rate)
		a.take(10)
		a.left(a.do(ratelimit.Exchange{Reset: true}), 10, name+": after a reset")
		a.left(a.other(1).refresh(), 10, name+": seen by another node")
		a.take(4)
		g := a.do(ratelimit.Exchange{Reset: true, Needs: []ratelimit.Need{{Cost: 3, Count: 1}}})
		if g.Units != 3 {
			t.Fatalf("%s: granted %d, want 3 after a reset in the same exchange", name, g.Units)
		}
		a.left(g, 7, name+": reset, then 3 taken")
	}
}

func testAdd(t *testing.T, env Env) {
	for name, rate := range everyAlgorithm(10, 24*time.Hour) {
		a := newActor(t, env, rate)
		a.take(10)
		a.left(a.do(ratelimit.Exchange{Add: 4}), 4, name+": four extra")
		a.take(4)
		if g := a.do(need(1, 1)); g.Units != 0 {
			t.Fatalf("%s: granted %d beyond the extra ones", name, g.Units)
		}
	}
}

// RunAway holds a store that can be taken away to what it must say meanwhile.
// Away takes it away; the function it returns brings it back. The case spends
// about a second.
func RunAway(t *testing.T, env Env, away func(t *testing.T) (back func())) {
	t.Helper()
	a := newActor(t, env, sliding(10, time.Hour))
	a.take(3)
	back := away(t)

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := a.store.Exchange(ctx, a.fill(ratelimit.Exchange{}))
	switch {
	case err == nil:
		t.Error("a store that is away answered a refresh")
	case !errors.Is(err, ratelimit.ErrUnavailable) && !errors.Is(err, ratelimit.ErrUnknown) && !errors.Is(err, context.DeadlineExceeded):
		t.Errorf("%v, want ErrUnavailable, ErrUnknown or the context's own", err)
	default:
		checkWords(t, a.key, err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("an exchange of 300 ms took %v", took)
	}

	back()
	a.left(a.eventually(), 7, "what was spent before the store went away")
}

// eventually refreshes until the store answers.
func (a *actor) eventually() ratelimit.Grant {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience*2)
	defer cancel()
	for {
		once, done := context.WithTimeout(ctx, 500*time.Millisecond)
		g, err := a.store.Exchange(once, a.fill(ratelimit.Exchange{}))
		done()
		if err == nil {
			return g
		}
		if wait(ctx, 50*time.Millisecond) != nil {
			a.t.Fatalf("the store did not come back: %v", err)
		}
	}
}

// checkWords: an error says something, and does not hold the counter's name,
// which holds an account.
func checkWords(t *testing.T, key ratelimit.Key, err error) {
	t.Helper()
	text := err.Error()
	identity := string(key[strings.LastIndexByte(string(key), '.')+1:])
	if strings.TrimSpace(text) == "" || strings.Contains(text, identity) {
		t.Errorf("error text %q is empty or names the counter", text)
	}
}
