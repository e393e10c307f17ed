package kvstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// How many counters a used directory holds; few with -short, which only shows
// that it runs.
const (
	startRecords      = 100_000
	startRecordsShort = 1_000
)

// BenchmarkStart measures the time from Start to joined. Run it with
// -benchtime=1x: each round starts everything anew.
func BenchmarkStart(b *testing.B) {
	records := startRecords
	if testing.Short() {
		records = startRecordsShort
	}
	b.Run("alone/empty", func(b *testing.B) {
		startRounds(b, func() []Config { return []Config{testConfig(b)} }, 0)
	})
	b.Run("alone/counters", func(b *testing.B) {
		startRounds(b, func() []Config { return []Config{testConfig(b)} }, records)
	})
	b.Run("three/empty", func(b *testing.B) {
		startRounds(b, func() []Config { return memberConfigs(b) }, 0)
	})
	b.Run("three/counters", func(b *testing.B) {
		startRounds(b, func() []Config { return memberConfigs(b) }, records)
	})
}

// startRounds starts the nodes of configs; with records, a second time, after they
// were filled and stopped, and it is that start which counts.
func startRounds(b *testing.B, configs func() []Config, records int) {
	var took time.Duration
	for b.Loop() {
		cfgs := configs()
		began := time.Now()
		stores := startStores(b, cfgs)
		awaitJoined(b, stores...)
		if records > 0 {
			fill(b, stores[0].JetStream(), records)
			for _, s := range stores {
				stopStore(b, s)
			}
			began = time.Now()
			stores = startStores(b, cfgs)
			awaitJoined(b, stores...)
		}
		took += time.Since(began)
		for _, s := range stores {
			stopStore(b, s)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took.Seconds()/float64(b.N), "s/start")
}

// fill writes counters as large as those of one rate.
func fill(tb testing.TB, js jetstream.JetStream, n int) {
	tb.Helper()
	for i := range n {
		m := nats.NewMsg(fmt.Sprintf("%sfunction.version.account.%d", subjectPrefix(CountersBucket), i))
		m.Data = make([]byte, 40)
		m.Header.Set(headerTTL, "3600")
		if _, err := js.PublishMsgAsync(m, jetstream.WithStallWait(testPatience)); err != nil {
			tb.Fatal(err)
		}
	}
	select {
	case <-js.PublishAsyncComplete():
	case <-time.After(2 * testPatience):
		tb.Fatal("the counters were not written in time")
	}
	info, err := bucketInfo(tb.Context(), js, CountersBucket)
	if err != nil {
		tb.Fatal(err)
	}
	if info.State.Msgs < uint64(n) {
		tb.Fatalf("%d of %d counters were written", info.State.Msgs, n)
	}
}
