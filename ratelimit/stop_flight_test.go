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

// TestStop_waitsForExchangesOfCellsThatAreNotKept: whoever asked has gone, and
// what the store grants goes back before the node does.
func TestStop_waitsForExchangesOfCellsThatAreNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := storetest.NewClock()
		slow := storetest.WithFaults(func(ratelimit.Exchange) storetest.Fault {
			return storetest.Fault{After: 50 * time.Millisecond}
		})
		store := storetest.NewMemory(clock, slow)
		cfg := ratelimit.DefaultConfig()
		cfg.Node, cfg.MaxCells = "node", 1
		policies := finderOf(policy(func(p *ratelimit.Policy) { p.Account = rates(t, "100-H") }))
		keys := ratelimit.NewKeyring()
		l, err := ratelimit.New(store, clock, policies, keys, cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ask := func(ctx context.Context, account string) error {
			_, err := l.Decide(ctx, ratelimit.Invocation{Function: "f", Version: "v", Account: account, Cost: 1})
			return err
		}
		if err := ask(t.Context(), "kept"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := ask(ctx, "not-kept"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, want to have left", err)
		}
		if err := l.Stop(t.Context()); err != nil {
			t.Errorf("stop: %v", err)
		}
		key, _ := keys.Key(ratelimit.Account, "f", ratelimit.Any, "not-kept", "")
		if left := store.State(key).Available(rates(t, "100-H"), clock.Now()); left != 100 {
			t.Errorf("%d left, want all 100 back", left)
		}
	})
}
