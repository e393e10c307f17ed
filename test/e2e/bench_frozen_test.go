package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// BenchmarkFrozenStore measures what callers notice when the store stops
// answering under five thousand decisions a second on a hundred accounts: the
// 99th percentile before, in the first half second and from then on, and how
// many goroutines the node has at its worst beside those it had before.
func BenchmarkFrozenStore(b *testing.B) {
	policy := cluster.Policy{Rates: "1000000-H"}
	for b.Loop() {
		c := cluster.Start(b, cluster.Options{Shape: cluster.External, Nodes: 1, Servers: 1, Policies: []cluster.Policy{policy}, Attempt: cluster.ProductAttempt})
		var callers []*cluster.Caller
		for range 100 {
			callers = append(callers, c.Fresh(policy))
		}
		load := c.Offer(cluster.Plan{Callers: callers, PerSecond: 5000})
		pause(3 * time.Second)
		before := c.Node(1).Metric("go_goroutines")
		frozen := c.Now()
		c.Server(1).Freeze()
		worst := before
		for range 30 {
			pause(100 * time.Millisecond)
			worst = max(worst, c.Node(1).Metric("go_goroutines"))
		}
		thawed := c.Now()
		c.Server(1).Thaw()
		calls := load.Stop()
		share := func(from, to time.Duration) float64 {
			own := slices.DeleteFunc(slices.Clone(calls), func(c cluster.Call) bool { return c.Start < from || c.Start >= to })
			return float64(cluster.Percentile(own, 0.99).Microseconds()) / 1000
		}
		half := frozen + 500*time.Millisecond
		b.ReportMetric(share(frozen-2*time.Second, frozen), "p99-before-ms")
		b.ReportMetric(share(frozen, half), "p99-first-half-second-ms")
		b.ReportMetric(share(half, thawed), "p99-after-ms")
		b.ReportMetric(before, "goroutines-before")
		b.ReportMetric(worst, "goroutines-worst")
	}
}
