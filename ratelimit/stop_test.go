package ratelimit_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// A node that stops gives back what it leased and posts what it owes; what it
// cannot settle it counts.
func TestStop_settlesOrCounts(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.spend(300, ratelimit.Invocation{Account: "acme"})
		if err := w.nodes[0].Stop(w.t.Context()); err != nil {
			t.Fatalf("stop: %v", err)
		}
		w.want("charged", int(w.used(ratelimit.Account, "1000-H", "acme", "")), 300)
		if _, err := w.nodes[0].Decide(w.t.Context(), ratelimit.Invocation{Account: "acme", Function: "f", Cost: 1}); !errors.Is(err, ratelimit.ErrStopped) {
			t.Errorf("decide after stop: %v, want ErrStopped", err)
		}

		w.nodes[0] = w.node(1)
		w.store.SetAway(storeRefusing)
		w.want("without the store", w.spend(10, ratelimit.Invocation{Account: "other"}), 10)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		err := w.nodes[0].Stop(ctx)
		var left *ratelimit.UnsettledError
		if !errors.As(err, &left) || left.Units != 10 || left.Counters != 1 {
			t.Errorf("stop without the store: %v, want 10 units on 1 counter", err)
		}
	}, perAccount(t, "1000-H", ratelimit.Leased))
}

// A node that stops while it cannot tell whether units were charged says so:
// nobody spent them, and nobody will hand them back.
func TestStop_countsWhatMayHaveBeenCharged(t *testing.T) {
	for _, tt := range []struct {
		name string
		away storetest.Away // while it stops
		left int64
	}{{"the store answers nothing", storeSilent, 3}, {"the store is back", storeHere, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.store.SetAway(storeSilent)
				if d := w.ask(0, ratelimit.Invocation{Account: "acme", Cost: 3}); d.Allowed() {
					t.Fatalf("%+v without the store", d)
				}
				synctest.Wait()
				if n := w.nodes[0].Unsettled(); n != 3 {
					t.Errorf("%d unsettled while the store may have charged 3", n)
				}
				w.store.SetAway(tt.away)
				ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
				defer cancel()
				err := w.nodes[0].Stop(ctx)
				var left *ratelimit.UnsettledError
				switch {
				case tt.left == 0 && err != nil:
					t.Errorf("stop: %v", err)
				case tt.left > 0 && (!errors.As(err, &left) || left.Units != tt.left || left.Counters != 1):
					t.Errorf("stop: %v, want %d units on 1 counter", err, tt.left)
				}
			}, policy(func(p *ratelimit.Policy) {
				p.Account, p.Consistency, p.OnStoreFailure = rates(t, "10-H"), ratelimit.Exact, ratelimit.FailDeny
			}))
		})
	}
}
