package kvstore

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// BenchmarkExact is what a decision costs that always asks the store: one unit
// per exchange, on one hot counter and on 10,000, by 1, 16 and 64 callers, with
// an embedded server alone. reference/cas is one caller in a bare loop of read
// and compare-and-swap on one key of the same bucket.
func BenchmarkExact(b *testing.B) {
	store := startStore(b, testConfig(b))
	awaitJoined(b, store)
	b.Run("reference/cas", func(b *testing.B) { benchmarkReference(b, store.JetStream()) })
	for _, load := range []struct {
		name     string
		counters int
	}{{"hot", 1}, {"many", 10_000}} {
		for _, callers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("exact/%s/%d", load.name, callers), func(b *testing.B) {
				benchmarkExact(b, store, load.counters, callers)
			})
		}
	}
}

func benchmarkExact(b *testing.B, store *Store, counters, callers int) {
	keys := make([]ratelimit.Key, counters)
	for i := range keys {
		keys[i] = ratelimit.Key(fmt.Sprintf("bench.%d-%d.account.%d", b.N, callers, i))
	}
	rates := perDay(counter.MaxUnits)
	before := testutil.ToFloat64(store.metrics.writes)
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				x := needs(keys[int(i)%counters], rates, 1)
				x.Node, x.Serial = "bench", uint64(i)
				if g, err := store.Exchange(b.Context(), x); err != nil || g.Units != 1 {
					b.Errorf("granted %d, %v", g.Units, err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	writes := testutil.ToFloat64(store.metrics.writes) - before
	b.ReportMetric(writes/float64(b.N), "exchanges/decision")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}

func benchmarkReference(b *testing.B, js jetstream.JetStream) {
	kv, err := js.KeyValue(b.Context(), CountersBucket)
	if err != nil {
		b.Fatal(err)
	}
	key := fmt.Sprintf("bench.reference.account.%d", b.N)
	if _, err := kv.Create(b.Context(), key, make([]byte, 40)); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		entry, err := kv.Get(b.Context(), key)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := kv.Update(b.Context(), key, entry.Value(), entry.Revision()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
}
