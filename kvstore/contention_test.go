package kvstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/ratelimit"
)

// TestCase16OneKeyManyClients: 200 clients over three nodes on one key of a
// bucket with three replicas, with owners and without. No error reaches a
// client, no unit is granted twice, and a write is retried less than 1.5 times.
func TestCase16OneKeyManyClients(t *testing.T) {
	b := newBed(t, 3)
	const span = 3 * time.Second
	t.Run("owners", func(t *testing.T) {
		stores := make(map[string]ratelimit.Store)
		var counts []*metrics
		for _, o := range b.members(t, 3, patientOwners) {
			stores[o.node] = o
			counts = append(counts, o.metrics)
		}
		contend(t, b, stores, counts, span)
	})
	t.Run("straight", func(t *testing.T) {
		stores := make(map[string]ratelimit.Store)
		var counts []*metrics
		for i := range 3 {
			node := fmt.Sprintf("straight-%d", i)
			s := b.settler(t, node)
			stores[node] = s
			counts = append(counts, s.metrics)
		}
		contend(t, b, stores, counts, span)
	})
}

// contend lets 200 clients spend one counter for a while.
func contend(t *testing.T, b *bed, stores map[string]ratelimit.Store, counts []*metrics, span time.Duration) {
	const clients, limit = 200, int64(1) << 40
	key := ratelimit.Key("f.v.account." + t.Name()[len("TestCase16OneKeyManyClients/"):])
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	var granted atomic.Int64
	var wg sync.WaitGroup
	for node, store := range stores {
		for range clients / len(stores) {
			wg.Go(func() {
				for ctx.Err() == nil {
					// The client's own patience is longer than the test's.
					g, err := store.Exchange(t.Context(), named(node, needs(key, perDay(limit), 1)))
					if err != nil {
						t.Errorf("an error reached a client: %v", err)
						return
					}
					granted.Add(g.Units)
				}
			})
		}
	}
	wg.Wait()
	_, rec := b.stored(t, b.jetStream(t, 0), key)
	if charged := limit - rec.counter.Available(perDay(limit), rec.counter.Seen); charged != granted.Load() {
		t.Errorf("granted %d, charged %d", granted.Load(), charged)
	}
	var writes, conflicts, doubts float64
	for _, m := range counts {
		writes += testutil.ToFloat64(m.writes)
		conflicts += testutil.ToFloat64(m.conflicts)
		doubts += testutil.ToFloat64(m.doubts)
	}
	retries := conflicts / (writes - conflicts)
	t.Logf("%d granted, %v writes, %.2f retries each, %v unacknowledged", granted.Load(), writes, retries, doubts)
	if retries >= 1.5 {
		t.Errorf("%.2f retries per write that counted, want fewer than 1.5", retries)
	}
}
