package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Env is a store under test, as its nodes see it.
type Env struct {
	// Stores are the ways of different nodes to the same counters. At least
	// one; several find more.
	Stores []ratelimit.Store
	// Clock is the store's clock as the test may know it.
	Clock ratelimit.Clock
	// Stale bounds how long another node's write may stay unseen by a refresh.
	// Zero: not at all.
	Stale time.Duration
}

// Case is one demand of the contract.
type Case struct {
	Name string
	Run  func(t *testing.T, env Env)
}

// Cases are all of them, in no particular order. Each uses counters of its own,
// so that they may share a store and run at the same time; none runs longer
// than a few seconds of the store's clock.
func Cases() []Case {
	var all []Case
	for _, group := range [][]Case{chargeCases(), timeCases(), repeatCases(), faultCases(), operatorCases()} {
		all = append(all, group...)
	}
	return all
}

// Run holds the store that setup returns to every case. Setup is called once.
func Run(t *testing.T, setup func(t *testing.T) Env) {
	t.Helper()
	env := setup(t)
	if len(env.Stores) == 0 || env.Clock == nil {
		t.Fatal("storetest: Env needs a store and its clock")
	}
	t.Run("conformance", func(t *testing.T) {
		for _, c := range Cases() {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				c.Run(t, env)
			})
		}
	})
}

// patience bounds every exchange and every wait of a case.
const patience = 10 * time.Second

// run numbers the counters of this process, so that no case meets the leavings
// of an earlier one.
var run atomic.Uint64

// actor is one counter as a case deals with it, through one node.
type actor struct {
	t      *testing.T
	env    Env
	store  ratelimit.Store
	key    ratelimit.Key
	rates  []counter.Rate
	node   string
	serial *atomic.Uint64
}

// newActor names a counter that nobody used before.
func newActor(t *testing.T, env Env, rates ...counter.Rate) *actor {
	t.Helper()
	id := fmt.Sprintf("%x-%x", time.Now().UnixNano(), run.Add(1))
	return &actor{
		t: t, env: env, store: env.Stores[0], rates: rates, serial: new(atomic.Uint64),
		key:  ratelimit.Key("storetest.1.account." + id),
		node: "node-" + id,
	}
}

// other is the same counter through another node. The serials go on.
func (a *actor) other(i int) *actor {
	b := *a
	b.store = a.env.Stores[i%len(a.env.Stores)]
	b.node = fmt.Sprintf("%s-%d", a.node, i)
	return &b
}

// under is the same counter and node with other rates.
func (a *actor) under(rates ...counter.Rate) *actor {
	b := *a
	b.rates = rates
	return &b
}

// fill completes an exchange with the actor's counter and a new serial.
func (a *actor) fill(x ratelimit.Exchange) ratelimit.Exchange {
	x.Key, x.Rates, x.Node, x.Serial = a.key, a.rates, a.node, a.serial.Add(1)
	return x
}

// try is one exchange that may fail.
func (a *actor) try(ctx context.Context, x ratelimit.Exchange) (ratelimit.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return a.store.Exchange(ctx, a.fill(x))
}

// do is one exchange that must succeed.
func (a *actor) do(x ratelimit.Exchange) ratelimit.Grant {
	a.t.Helper()
	g, err := a.try(a.t.Context(), x)
	if err != nil {
		a.t.Fatalf("exchange: %v", err)
	}
	return g
}

// take charges units at once and demands that they are granted.
func (a *actor) take(units int64) ratelimit.Grant {
	a.t.Helper()
	g := a.do(need(units, 1))
	if g.Units != units {
		a.t.Fatalf("granted %d, want %d", g.Units, units)
	}
	return g
}

// refresh reads.
func (a *actor) refresh() ratelimit.Grant { a.t.Helper(); return a.do(ratelimit.Exchange{}) }

// left demands what is available after g.
func (a *actor) left(g ratelimit.Grant, want int64, why string) {
	a.t.Helper()
	if got := g.State.Available(a.rates, g.At); got != want {
		a.t.Fatalf("%s: %d available, want %d", why, got, want)
	}
}

// until waits for an instant of the store's clock, and the clock's error more.
func (a *actor) until(at counter.Instant) {
	a.t.Helper()
	d := at.Sub(a.env.Clock.Now()) + a.env.Clock.Error()
	if d > patience {
		a.t.Fatalf("would have to wait %v", d)
	}
	if err := wait(a.t.Context(), d); err != nil {
		a.t.Fatal(err)
	}
}

// need is count invocations of one cost that wait.
func need(cost, count int64) ratelimit.Exchange {
	return ratelimit.Exchange{Needs: []ratelimit.Need{{Cost: cost, Count: count}}}
}

// ahead is units wanted for a life of 100 ms.
func ahead(units int64) ratelimit.Exchange {
	return ratelimit.Exchange{Want: units, Life: 100 * time.Millisecond}
}

func sliding(units int64, period time.Duration) counter.Rate {
	return counter.Rate{Units: units, Period: period}
}

// everyAlgorithm is the same units per period by each of them.
func everyAlgorithm(units int64, period time.Duration) map[string]counter.Rate {
	return map[string]counter.Rate{
		"sliding":      {Units: units, Period: period, Algorithm: counter.Sliding},
		"fixed":        {Units: units, Period: period, Algorithm: counter.Fixed},
		"token bucket": {Units: units, Period: period, Algorithm: counter.TokenBucket},
	}
}
