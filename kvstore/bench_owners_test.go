package kvstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// BenchmarkOwners is one hot counter of 10,000 per second that many nodes deal
// with on three servers: each node asks every 20 ms for its share of 20,000
// decisions per second, as a node with leases does. An operation is one
// exchange of one node. With -short, which only shows that it runs, there are
// few nodes.
func BenchmarkOwners(b *testing.B) {
	fleets := []int{3, 9, 30, 60}
	if testing.Short() {
		fleets = fleets[:1]
	}
	for _, nodes := range fleets {
		for _, way := range []string{"owners", "straight"} {
			b.Run(fmt.Sprintf("%s/%d", way, nodes), func(b *testing.B) { benchmarkOwners(b, nodes, way == "owners") })
		}
	}
}

func benchmarkOwners(b *testing.B, nodes int, withOwners bool) {
	const tick, patience = 20 * time.Millisecond, 100 * time.Millisecond
	bed := newBed(b, 3)
	members := bed.members(b, nodes, ownerConfig{})
	rates := []counter.Rate{{Units: 10_000, Period: time.Second}}
	share := int64(20_000 * tick.Seconds() / float64(nodes))
	took := make([][]time.Duration, nodes)
	var failed atomic.Int64
	b.ResetTimer()
	var wg sync.WaitGroup
	for i, o := range members {
		wg.Go(func() {
			ticker := time.NewTicker(tick)
			defer ticker.Stop()
			for range max(1, b.N/nodes) {
				<-ticker.C
				x := named(o.node, needs("f.v.total._", rates, share))
				var store ratelimit.Store = o
				if !withOwners {
					store = o.settler
				}
				started := time.Now()
				ctx, cancel := context.WithTimeout(b.Context(), patience)
				if _, err := store.Exchange(ctx, x); err != nil {
					failed.Add(1)
				}
				cancel()
				took[i] = append(took[i], time.Since(started))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	var writes, conflicts, silent float64
	for _, o := range members {
		writes += testutil.ToFloat64(o.metrics.writes)
		conflicts += testutil.ToFloat64(o.metrics.conflicts)
		silent += testutil.ToFloat64(o.metrics.asks[askSilent])
	}
	all := slices.Concat(took...)
	slices.Sort(all)
	n := float64(len(all))
	b.ReportMetric(writes/n, "writes/op")
	b.ReportMetric(conflicts/max(1, writes), "conflicts/write")
	b.ReportMetric(silent/n, "silent/op")
	b.ReportMetric(float64(failed.Load())/n, "failed/op")
	b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
}
