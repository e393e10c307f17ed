package ratelimit_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// Case 2: the second bug report. Twice the limit is offered to two nodes; an
// exact window would admit 100 in every span of ten seconds.
func TestCase2_delayedKeepsRefreshing(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		start := w.clock.Now()
		admitted := w.offer(50*time.Millisecond, 60*time.Second, ratelimit.Invocation{Account: "acme"})
		counts := make([]int, 6)
		for _, at := range admitted {
			counts[int(at.Sub(start)/(10*time.Second))]++
		}
		for i, n := range counts[1:] {
			if n < 90 || n > 100 {
				t.Errorf("window %d: %d admitted, want 90 to 100", i+2, n)
			}
		}
		before := w.store.Stats().Exchanges
		w.offer(50*time.Millisecond, 2*time.Second, ratelimit.Invocation{Account: "acme"})
		if asked := w.store.Stats().Exchanges - before; asked < 20 {
			t.Errorf("%d exchanges in two seconds of two nodes that mostly reject, want one per sync interval each", asked)
		}
	}, perAccount(t, "100/10s", ratelimit.Delayed))
}

// Case 3: a node that only rejects learns that the quota was freed.
func TestCase3_aRejectingNodeLearnsOfFreedQuota(t *testing.T) {
	for _, c := range consistencies {
		inWorld(t, 1, func(w *world) {
			inv := ratelimit.Invocation{Account: "acme", Cost: 1}
			w.spend(10, inv)
			settle()
			w.reset("acme")
			if w.ask(0, inv).Allowed() {
				t.Errorf("%v: admitted before the counter could be read again", c)
			}
			time.Sleep(ratelimit.DefaultConfig().SyncInterval)
			synctest.Wait()
			if d := w.ask(0, inv); !d.Allowed() {
				t.Errorf("%v: still denied a sync interval after the quota was freed: %+v", c, d)
			}
		}, perAccount(t, "10-H", c))
	}
}

// Case 4: with the store away and nothing admitted, nothing is charged to the
// node's own count.
func TestCase4_rejectingWithoutTheStoreChargesNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		inv := ratelimit.Invocation{Account: "acme", Cost: 1}
		w.want("admitted", w.spend(12, inv), 10)
		settle()
		w.store.SetAway(storeRefusing)
		w.offer(10*time.Millisecond, 10*ratelimit.DefaultConfig().SyncInterval, inv)
		if !w.nodes[0].Degraded() {
			t.Fatal("the store is away and the node does not know")
		}
		if n := w.nodes[0].Unsettled(); n != 0 {
			t.Errorf("%d units owed after rejections only, want 0", n)
		}
	}, perAccount(t, "10-H", ratelimit.Delayed))
}

// Case 5: a refresh with nothing to report charges nobody, also when it fails.
func TestCase5_aFailedRefreshChargesNobody(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		inv := ratelimit.Invocation{Account: "acme", Cost: 1}
		w.spend(4, inv)
		settle()
		w.ask(0, ratelimit.Invocation{Account: "acme"}) // looks
		w.store.SetAway(storeSilent)
		w.ask(0, ratelimit.Invocation{Account: "acme"})
		settle()
		w.store.SetAway(storeHere)
		settle()
		w.want("charged", int(w.used(ratelimit.Account, "10-H", "acme", "")), 4)
		w.want("admitted further", w.spend(10, inv), 6)
	}, perAccount(t, "10-H", ratelimit.Delayed))
}

// Case 13: one request per sync interval.
func TestCase13_onePerSyncInterval(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		sync := ratelimit.DefaultConfig().SyncInterval
		w.want("admitted", len(w.offer(sync, 20*sync, ratelimit.Invocation{Account: "acme"})), 20)
		settle()
		w.want("stored", int(w.used(ratelimit.Account, "20-H", "acme", "")), 20)
	}, perAccount(t, "20-H", ratelimit.Delayed))
}

// Case 14: what is pending when a refresh happens is not lost by it.
func TestCase14_aRefreshKeepsWhatIsPending(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		inv := ratelimit.Invocation{Account: "acme", Cost: 1}
		w.want("pending", w.spend(5, inv), 5)
		settle() // the refresh
		d := w.ask(0, inv)
		if !d.Allowed() || d.Remaining != 4 {
			t.Errorf("%+v, want admitted with 4 remaining", d)
		}
	}, perAccount(t, "10-H", ratelimit.Delayed))
}

// A new node, or one that was idle, reads a counter before it decides on it.
func TestDelayed_aFreshNodeReadsFirst(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		inv := ratelimit.Invocation{Account: "acme", Cost: 1}
		w.spend(10, inv)
		settle()
		w.nodes = append(w.nodes, w.node(2))
		if w.ask(1, inv).Allowed() {
			t.Error("a fresh node handed out a fresh budget")
		}
	}, perAccount(t, "10-H", ratelimit.Delayed))
}

// keeper keeps what exchanges carried, as a store does that is late with them.
type keeper struct {
	ratelimit.Store
	mu           sync.Mutex
	kept, copies [][]ratelimit.Post
}

func (k *keeper) Exchange(ctx context.Context, x ratelimit.Exchange) (ratelimit.Grant, error) {
	k.mu.Lock()
	k.kept, k.copies = append(k.kept, x.Posts), append(k.copies, slices.Clone(x.Posts))
	k.mu.Unlock()
	return k.Store.Exchange(ctx, x)
}

// A store that refused an exchange, or is late with it, may still read it.
func TestExchange_isNeverChangedOnceItTravels(t *testing.T) {
	inWorld(t, 0, func(w *world) {
		k := &keeper{Store: w.store}
		w.nodes = append(w.nodes, w.nodeOn(k, 1))
		inv := ratelimit.Invocation{Account: "acme"}
		w.offer(10*time.Millisecond, 200*time.Millisecond, inv)
		w.store.SetAway(storeRefusing)
		w.offer(10*time.Millisecond, 2*time.Second, inv)
		w.store.SetAway(storetest.Here)
		settle()
		k.mu.Lock()
		defer k.mu.Unlock()
		for i, posts := range k.kept {
			if !slices.Equal(posts, k.copies[i]) {
				t.Errorf("exchange %d carried %v when it was sent, and now %v", i+1, k.copies[i], posts)
			}
		}
		if !slices.ContainsFunc(k.copies, func(p []ratelimit.Post) bool { return len(p) > 0 }) {
			t.Error("no exchange carried anything")
		}
	}, perAccount(t, "100000-H", ratelimit.Delayed))
}
