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

// A hot counter on three nodes, twenty thousand decisions a second, the store a
// millisecond away: leases make the store's part small, and cost no admission.
func TestLeases_areFarBelowOneExchangePerDecision(t *testing.T) {
	for _, tt := range []struct {
		rate string
		span time.Duration
	}{{"100000-M", 20 * time.Second}, {"10000000-H", 10 * time.Second}} {
		t.Run(tt.rate, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := storetest.NewClock()
				hop := 500 * time.Microsecond
				store := storetest.NewMemory(clock, storetest.WithFaults(func(ratelimit.Exchange) storetest.Fault {
					return storetest.Fault{Before: hop, After: hop}
				}))
				w := &world{t: t, clock: clock, store: store, policies: finderOf(perAccount(t, tt.rate, ratelimit.Leased)), keys: ratelimit.NewKeyring()}
				for range 3 {
					w.nodes = append(w.nodes, w.node(3))
				}
				asked, admitted := flood(w, 20_000, tt.span)
				exchanges := float64(store.Stats().Exchanges) * 1000 / float64(asked)
				if exchanges > 10 {
					t.Errorf("%.1f exchanges per 1000 decisions, want at most 10", exchanges)
				}
				limit := int(mustRate(t, tt.rate).Units)
				if want := min(limit, asked) * 99 / 100; len(admitted) < want || len(admitted) > limit {
					t.Errorf("%d of %d admitted, want %d to %d", len(admitted), asked, want, limit)
				}
				t.Logf("%.1f exchanges per 1000 decisions, %d of %d admitted", exchanges, len(admitted), asked)
				for _, n := range w.nodes {
					if err := n.Stop(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// flood sends so many invocations a second from as many callers as it takes.
func flood(w *world, perSecond int, span time.Duration) (asked int, admitted []counter.Instant) {
	const callers = 60
	every := time.Second * callers / time.Duration(perSecond)
	results := make(chan []counter.Instant)
	for i := range callers {
		go func() {
			time.Sleep(every * time.Duration(i) / callers)
			var mine []counter.Instant
			for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(every) {
				d, err := w.nodes[i%3].Decide(context.Background(), ratelimit.Invocation{Account: "acme", Function: "f", Version: "v", Cost: 1})
				if err == nil && d.Allowed() {
					mine = append(mine, w.clock.Now())
				}
			}
			results <- mine
		}()
	}
	for range callers {
		admitted = append(admitted, <-results...)
	}
	return perSecond * int(span/time.Second), admitted
}
