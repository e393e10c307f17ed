package kvstore

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// BenchmarkSyncAlways measures what a flush for each write costs: one caller,
// one counter, a server alone.
func BenchmarkSyncAlways(b *testing.B) {
	for name, sync := range map[string]bool{"off": false, "on": true} {
		b.Run(name, func(b *testing.B) {
			cfg := testConfig(b)
			cfg.SyncAlways = sync
			s := startStore(b, cfg)
			awaitJoined(b, s)
			x := ratelimit.Exchange{
				Key:   "f.v.account.a",
				Rates: []counter.Rate{{Units: counter.MaxUnits, Period: time.Hour}},
				Needs: []ratelimit.Need{{Cost: 1, Count: 1}},
				Node:  "bench",
			}
			for b.Loop() {
				x.Serial++
				if _, err := s.Exchange(b.Context(), x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
