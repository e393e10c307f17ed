package ratelimit_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// A reset while three nodes hold leases: what comes after it is the full budget
// and never more.
func TestHold_aResetOutlivesNoLease(t *testing.T) {
	for _, c := range consistencies {
		t.Run(c.String(), func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				inv := ratelimit.Invocation{Account: "acme"}
				w.offer(time.Millisecond, 600*time.Millisecond, inv)
				key, _ := w.keys.Key(ratelimit.Account, "f", ratelimit.Any, "acme", "")
				var releases []func()
				for _, n := range w.nodes {
					release, err := n.Hold(w.t.Context(), key)
					if err != nil {
						t.Fatal(err)
					}
					releases = append(releases, release)
					if units, _ := n.Leased(key); units != 0 {
						t.Errorf("%d units leased under a hold", units)
					}
				}
				w.want("admitted under a hold", w.spend(3, inv), 0)
				if _, err := w.store.Exchange(context.Background(), ratelimit.Exchange{Key: key, Rates: rates(t, "1000-H"), Reset: true, Node: "op", Serial: 1}); err != nil {
					t.Fatal(err)
				}
				for _, release := range releases {
					release()
				}
				// What all nodes admit in a sync interval is less than the last units,
				// which are taken one by one: delayed exceeds no limit so.
				var after []counter.Instant
				for range 3 {
					after = append(after, w.offer(2*time.Millisecond, time.Second, inv)...)
				}
				if n := len(after); n > 1000 || (c != ratelimit.Delayed && n < 1000) || n < 990 {
					t.Errorf("%d admitted after the reset, want 1000", n)
				}
			}, perAccount(t, "1000-H", c))
		})
	}
}

func TestLeased_tellsWhatANodeHolds(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.offer(time.Millisecond, 500*time.Millisecond, ratelimit.Invocation{Account: "acme"})
		key, _ := w.keys.Key(ratelimit.Account, "f", ratelimit.Any, "acme", "")
		units, until := w.nodes[0].Leased(key)
		if units <= 0 || until <= w.clock.Now() {
			t.Errorf("%d units until %v under steady demand, want a live lease", units, until.Time())
		}
		settle()
		if units, _ := w.nodes[0].Leased(key); units != 0 {
			t.Errorf("%d units leased after falling idle, want none", units)
		}
	}, perAccount(t, "100000-H", ratelimit.Leased))
}

// The race detector judges this one: a node is asked what it holds while it is
// asked for invocations and its leases end.
func TestLeased_mayBeAskedAtAnyTime(t *testing.T) {
	for _, c := range consistencies {
		inWorld(t, 1, func(w *world) {
			inv := ratelimit.Invocation{Account: "acme"}
			key, _ := w.keys.Key(ratelimit.Account, "f", ratelimit.Any, "acme", "")
			var asking sync.WaitGroup
			asking.Go(func() {
				for range 1000 {
					w.nodes[0].Leased(key)
					time.Sleep(time.Millisecond)
				}
			})
			w.offer(10*time.Millisecond, time.Second, inv)
			asking.Wait()
		}, perAccount(t, "100000-H", c))
	}
}
