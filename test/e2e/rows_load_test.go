package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// underLoad starts a cluster of each shape whose network can be cut, and hands it
// to the row. attempt is 0 where the row judges counters: a stall of the machine
// must not turn a decision into a degraded one. With the product's own bound a
// row has the machine to itself.
func underLoad(t *testing.T, attempt time.Duration, policies []cluster.Policy, row func(*testing.T, *cluster.Cluster)) {
	shared := attempt != cluster.ProductAttempt
	if shared {
		t.Parallel()
	}
	for _, shape := range cluster.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			if shared {
				t.Parallel()
			}
			row(t, cluster.Start(t, cluster.Options{
				Shape: shape, Policies: policies, Attempt: attempt, Cuttable: true,
			}))
		})
	}
}

// pause lets a load run on for a while.
func pause(d time.Duration) { <-time.After(d) }

// wantDecided fails the test for every call that got no decision for another
// reason than those allowed.
func wantDecided(t *testing.T, calls []cluster.Call, allowed func(cluster.Call) bool) {
	t.Helper()
	const shown = 5
	bad := 0
	for _, c := range calls {
		if c.Err == nil || allowed(c) {
			continue
		}
		if bad++; bad <= shown {
			t.Errorf("a call got no decision after %v and %d nodes: %v", c.Took(), c.Tries, c.Err)
		}
	}
	if bad > shown {
		t.Errorf("%d calls got no decision", bad)
	}
}

// never allows no call to go without a decision.
func never(cluster.Call) bool { return false }

// told is a summary of a load for the log of a test.
func told(calls []cluster.Call) string {
	admitted, degraded, failed := len(cluster.Admitted(calls)), 0, 0
	for _, c := range calls {
		if c.Degraded {
			degraded++
		}
		if c.Err != nil {
			failed++
		}
	}
	return fmt.Sprintf("%d calls, %d admitted, %d degraded, %d without a decision, p99 %v, slowest %v",
		len(calls), admitted, degraded, failed, cluster.Percentile(calls, 0.99), cluster.Percentile(calls, 1))
}

// Row 11: a rolling restart while a budget is spent, over each wire. The clients
// ask another node when they find theirs gone.
func TestRow11RollingRestartUnderLoad(t *testing.T) {
	const limit, offered = 1000, 1400
	policy := cluster.Policy{Rates: "1000-H"}
	underLoad(t, 0, []cluster.Policy{policy}, func(t *testing.T, c *cluster.Cluster) {
		plan := cluster.Plan{PerSecond: 200, Retry: true, Deadline: 5 * time.Second}
		var loads []*cluster.Load
		for _, plan.Wire = range []cluster.Wire{cluster.NVCF, cluster.HTTP} {
			plan.Callers = []*cluster.Caller{c.Fresh(policy)}
			loads = append(loads, c.Offer(plan))
		}
		roll(c, (*cluster.Node).Start)
		for _, load := range loads {
			c.Await(time.Minute, "the load is through", func() error {
				if n := len(load.Calls()); n < offered {
					return fmt.Errorf("%d calls so far", n)
				}
				return nil
			})
			calls := load.Stop()
			t.Log(told(calls))
			wantDecided(t, calls, never)
			if got := len(cluster.Admitted(calls)); got != limit {
				t.Errorf("%d admitted over the whole run, want exactly %d", got, limit)
			}
		}
	})
}

// Row 12: a node that holds leases stands still for 10 s and goes on as if
// nothing had been. Where servers are embedded it is the one whose server leads
// the counters' bucket, which is the worst one.
func TestRow12FrozenNodeHoldsLeases(t *testing.T) {
	const frozen = 10 * time.Second
	hour, short := cluster.Policy{Rates: "600-H"}, cluster.Policy{Rates: "300/15s"}
	underLoad(t, cluster.ProductAttempt, []cluster.Policy{hour, short}, func(t *testing.T, c *cluster.Cluster) {
		callers := []*cluster.Caller{c.Fresh(hour), c.Fresh(short)}
		// The clients wait: what the frozen node admits when it goes on counts.
		load := c.Offer(cluster.Plan{Callers: callers, PerSecond: 80, Wire: cluster.HTTP, Deadline: time.Minute})
		pause(2 * time.Second)
		holder := c.Node(1)
		if len(c.Servers()) == 0 {
			holder = c.Leader()
		}
		holder.Freeze()
		pause(frozen)
		holder.Thaw()
		pause(6 * time.Second)
		calls := load.Stop()
		t.Log(told(calls))
		wantDecided(t, calls, func(c cluster.Call) bool { return c.Node == holder.Number() && cluster.Broken(c.Err) })
		if got := len(cluster.Admitted(cluster.Of(calls, callers[0]))); got > 600 {
			t.Errorf("%d admitted of 600-H", got)
		}
		if got := cluster.MostInSpan(cluster.Of(calls, callers[1]), 15*time.Second); got > 300 {
			t.Errorf("%d admitted in 15 s of 300/15s", got)
		}
		c.AwaitReady()
	})
}

// Row 16: the external servers are restarted one after the other, under a load
// on a warm counter. Whether counters stand is judged in rows_test.go, with
// attempts that no stall of the machine outlasts; this judges speed, with those
// that a user gets, so it does not run beside others.
func TestRow16UpgradeOfNATS(t *testing.T) {
	warm := cluster.Policy{Rates: "1000000-H"}
	c := cluster.Start(t, cluster.Options{
		Shape: cluster.External, Policies: []cluster.Policy{warm}, Attempt: cluster.ProductAttempt,
	})
	load := c.Offer(cluster.Plan{Callers: []*cluster.Caller{c.Fresh(warm)}, PerSecond: 200, Wire: cluster.HTTP})
	control := c.Noise()
	pause(2 * time.Second)
	upgrade(c)
	calls, noise := load.Stop(), control.Stop()
	t.Log(told(calls))
	t.Logf("control: %s", told(noise))
	wantDecided(t, calls, never)
	wantWarm(t, calls, noise)
	c.AwaitReady()
}

// upgrade restarts the servers of NATS one after the other.
func upgrade(c *cluster.Cluster) {
	for _, s := range c.Servers() {
		s.Stop()
		s.Start()
		s.AwaitServing()
		c.AwaitReplicas()
		pause(time.Second)
	}
}

// warmP99 is what a decision on a warm counter may take at the client beyond
// what the machine adds.
const warmP99 = 5 * time.Millisecond

// wantWarm: the p99 of calls is that of warm decisions. noise is calls that
// nothing limits, made at the same time: what those take is the machine's doing,
// once for a decision and once for the exchange that one of a hundred waits for.
// A lease that ran out while the machine stood still is missed for as long as an
// exchange may take.
func wantWarm(t *testing.T, calls, noise []cluster.Call) {
	t.Helper()
	own := cluster.Undisturbed(calls, noise, 2, cluster.ProductAttempt)
	got := cluster.Percentile(own, 0.99)
	t.Logf("p99 beyond what the machine added: %v", got)
	if got > warmP99 {
		t.Errorf("p99 of warm decisions was %v beyond what the machine added, want at most %v", got, warmP99)
	}
}
