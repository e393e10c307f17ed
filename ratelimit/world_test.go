package ratelimit_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// world is some nodes beside one store, in virtual time.
type world struct {
	t        *testing.T
	clock    *storetest.Clock
	store    *storetest.Memory
	policies *finder
	keys     *ratelimit.Keyring
	nodes    []*ratelimit.Limiter
}

// inWorld runs a story in a bubble. Nodes are stopped at its end.
func inWorld(t *testing.T, nodes int, story func(w *world), policies ...*ratelimit.Policy) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Away from the edges of slices and windows.
		time.Sleep(123456789 * time.Nanosecond)
		clock := storetest.NewClock()
		w := &world{t: t, clock: clock, store: storetest.NewMemory(clock), policies: finderOf(policies...), keys: ratelimit.NewKeyring()}
		w.keys.SetSecret([]byte("a secret of thirty-two bytes at least"))
		for range nodes {
			w.nodes = append(w.nodes, w.node(nodes))
		}
		story(w)
		w.store.SetAway(storetest.Here)
		for _, n := range w.nodes {
			if err := n.Stop(t.Context()); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
	})
}

// node starts one more limiter of a fleet of so many.
func (w *world) node(fleet int) *ratelimit.Limiter { return w.nodeOn(w.store, fleet) }

// nodeOn is node with another store.
func (w *world) nodeOn(store ratelimit.Store, fleet int) *ratelimit.Limiter {
	w.t.Helper()
	cfg := ratelimit.DefaultConfig()
	cfg.Node = "node"
	l, err := ratelimit.New(store, w.clock, w.policies, w.keys, cfg, ratelimit.WithNodes(func() int { return fleet }))
	if err != nil {
		w.t.Fatal(err)
	}
	if err := l.Start(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return l
}

// ask sends one invocation to a node.
func (w *world) ask(node int, inv ratelimit.Invocation) ratelimit.Decision {
	w.t.Helper()
	if inv.Function == "" {
		inv.Function = "f"
	}
	if inv.Version == "" {
		inv.Version = "v"
	}
	d, err := w.nodes[node].Decide(context.Background(), inv)
	if err != nil {
		w.t.Fatalf("decide: %v", err)
	}
	return d
}

// spend sends n invocations to the nodes in turn and tells how many passed.
func (w *world) spend(n int, inv ratelimit.Invocation) (admitted int) {
	w.t.Helper()
	inv.Cost = max(inv.Cost, 1)
	for i := range n {
		if w.ask(i%len(w.nodes), inv).Allowed() {
			admitted++
		}
	}
	return admitted
}

// offer sends one invocation every interval to the nodes in turn, for a span,
// and returns the instants of those that passed.
func (w *world) offer(every, span time.Duration, inv ratelimit.Invocation) (admitted []counter.Instant) {
	w.t.Helper()
	inv.Cost = max(inv.Cost, 1)
	end := time.Now().Add(span)
	for i := 0; time.Now().Before(end); i++ {
		if w.ask(i%len(w.nodes), inv).Allowed() {
			admitted = append(admitted, w.clock.Now())
		}
		time.Sleep(every)
	}
	return admitted
}

// used is what the store says that a counter has spent of a rate.
func (w *world) used(tier ratelimit.Tier, rate string, account, subject string) int64 {
	w.t.Helper()
	key, _ := w.keys.Key(tier, "f", ratelimit.Any, account, subject)
	r := mustRate(w.t, rate)
	return r.Capacity() - w.store.State(key).AvailableOf(r, w.clock.Now())
}

func (w *world) want(what string, got, want int) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: %d, want %d", what, got, want)
	}
}

// settle waits until all that nodes owe can have been settled.
func settle() {
	time.Sleep(2 * time.Second)
	synctest.Wait()
}

func mustRate(t *testing.T, text string) counter.Rate {
	t.Helper()
	return rates(t, text)[0]
}

func rates(t *testing.T, text string) []counter.Rate {
	t.Helper()
	list, err := counter.ParseRates(text)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// policy is a policy for every function.
func policy(change func(p *ratelimit.Policy)) *ratelimit.Policy {
	p := &ratelimit.Policy{Function: ratelimit.Any, Version: ratelimit.Any}
	change(p)
	return p
}
