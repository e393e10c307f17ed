package kvstore

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// onePolicy is the same policy for every function.
type onePolicy struct{ policy *ratelimit.Policy }

func (p onePolicy) Find(context.Context, string, string) (*ratelimit.Policy, bool) {
	return p.policy, false
}
func (onePolicy) Generation() uint64 { return 1 }

// limited are three members of a cluster with limiters and operators, all real.
type limited struct {
	t        *testing.T
	limiters []*ratelimit.Limiter
	nodes    []operated
	key      ratelimit.Key
	rates    []counter.Rate
}

func newLimited(t *testing.T, mode ratelimit.Consistency) *limited {
	t.Helper()
	members := memberConfigs(t)
	for i := range members {
		members[i].AttemptTimeout = patientAttempt
	}
	stores := startStores(t, members)
	awaitJoined(t, stores...)
	for _, s := range stores {
		await(t, "the others", func() bool { return len(s.nodes.members.others()) == len(stores)-1 })
	}
	w := &limited{t: t, rates: []counter.Rate{{Units: 1000, Period: time.Hour}}}
	policy := &ratelimit.Policy{
		Function: "f", Version: ratelimit.Any, Consistency: mode, Account: w.rates,
		OnStoreFailure: ratelimit.FailDeny, // a machine that stands still must not look like a fault
	}
	keys := ratelimit.NewKeyring()
	keys.SetSecret([]byte("secret"))
	w.key, _ = keys.Key(ratelimit.Account, "f", ratelimit.Any, "acme", "")
	w.nodes = operate(t, stores, func(i int) *ratelimit.Limiter {
		cfg := ratelimit.DefaultConfig()
		cfg.Node, cfg.Attempt = stores[i].cfg.NodeName, patientAttempt
		l, err := ratelimit.New(stores[i], stores[i].Clock(), onePolicy{policy}, keys, cfg,
			ratelimit.WithNodes(stores[i].Live), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stopLimiter(t, l) })
		w.limiters = append(w.limiters, l)
		return l
	})
	return w
}

func stopLimiter(t *testing.T, l *ratelimit.Limiter) {
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	if err := l.Stop(ctx); err != nil {
		t.Errorf("stop limiter: %v", err)
	}
}

// ask has a node decide one invocation.
func (w *limited) ask(node int) (admitted bool) {
	d, err := w.limiters[node].Decide(w.t.Context(), ratelimit.Invocation{Account: "acme", Function: "f", Version: "v", Cost: 1})
	if err != nil {
		w.t.Errorf("decide: %v", err)
	}
	return d.Allowed()
}

// load has all nodes asked, each every pause, until stop is called, which
// returns how many were admitted of the invocations that began after from said
// so.
func (w *limited) load(pause time.Duration) (from func(), stop func() int) {
	var counting atomic.Bool
	var admitted atomic.Int64
	var running sync.WaitGroup
	end := make(chan struct{})
	for node := range w.limiters {
		running.Go(func() {
			tick := time.NewTicker(pause)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
				case <-end:
					return
				}
				counts := counting.Load()
				if w.ask(node) && counts {
					admitted.Add(1)
				}
			}
		})
	}
	return func() { counting.Store(true) }, func() int {
		close(end)
		running.Wait()
		return int(admitted.Load())
	}
}

// allLease reports whether every node holds a lease now.
func (w *limited) allLease() bool {
	leases, silent, err := w.nodes[0].Leases(w.t.Context(), w.key)
	return err == nil && len(silent) == 0 && len(leases) == len(w.nodes)
}

// exhaust asks the nodes in turn until each denies many in a row, and returns how
// many were admitted.
func (w *limited) exhaust() (admitted int) {
	for denied := 0; denied < 200; {
		for node := range w.limiters {
			if w.ask(node) {
				admitted++
				denied = 0
			} else {
				denied++
			}
		}
	}
	return admitted
}

// A counter is reset while three nodes hold leases on it: what comes after is the
// full budget and never more, at once and under load alike.
func TestOperator_resetWhileThreeNodesHoldLeases(t *testing.T) {
	w := newLimited(t, ratelimit.Leased)
	t.Run("between invocations", func(t *testing.T) {
		w.t = t
		for range 3 {
			w.reset()
			_, stop := w.load(time.Millisecond)
			await(t, "all nodes hold leases", w.allLease)
			stop()
			w.reset()
			if got := w.exhaust(); got != 1000 {
				t.Errorf("%d admitted after the reset, want 1000", got)
			}
		}
	})
	t.Run("under load", func(t *testing.T) {
		w.t = t
		for range 3 {
			w.reset()
			from, stop := w.load(time.Millisecond)
			await(t, "all nodes hold leases", w.allLease)
			w.reset()
			from()
			await(t, "all is spent", w.spentAll)
			if got := stop(); got > 1000 || got < 900 {
				// What was admitted between the reset and its answer is not counted.
				t.Errorf("%d admitted after the reset, want nearly 1000", got)
			}
		}
	})
}

func (w *limited) reset() {
	w.t.Helper()
	if err := w.nodes[1].Reset(w.t.Context(), w.key, w.rates); err != nil {
		w.t.Fatal(err)
	}
}

// spentAll reports whether nothing is left of the counter, as the store says.
func (w *limited) spentAll() bool {
	c, err := w.nodes[2].store.Counter(w.t.Context(), w.key)
	return err == nil && c.Counter.Available(w.rates, w.nodes[2].store.Clock().Now()) == 0
}

// A grant on an exhausted counter reaches all nodes, although all of them know
// that nothing is left; and it is spent once.
func TestOperator_grantReachesAllNodes(t *testing.T) {
	w := newLimited(t, ratelimit.Leased)
	if got := w.exhaust(); got != 1000 {
		t.Fatalf("%d admitted, want 1000", got)
	}
	for node, n := range w.nodes {
		if err := n.Grant(t.Context(), w.key, w.rates, 1); err != nil {
			t.Fatal(err)
		}
		other := (node + 1) % len(w.nodes)
		await(t, "a unit of the grant", func() bool { return w.ask(other) })
		if got := w.exhaust(); got != 0 {
			t.Errorf("%d more admitted than the grant of one", got)
		}
	}
}
