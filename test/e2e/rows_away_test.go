package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// clientSlack is what a call may take beyond what the node waits for and beyond
// the longest stalls of the machine, one on its way there and one on its way back.
const clientSlack = 200 * time.Millisecond

// Row 13: the leader of the counters' bucket is killed while budgets are spent.
func TestRow13KilledLeader(t *testing.T) {
	const limit = 800
	leased, exact := cluster.Policy{Rates: "800-H"}, cluster.Policy{Rates: "800-H", Consistency: "exact"}
	underLoad(t, cluster.ProductAttempt, []cluster.Policy{leased, exact}, func(t *testing.T, c *cluster.Cluster) {
		callers := []*cluster.Caller{c.Fresh(leased), c.Fresh(exact)}
		load := c.Offer(cluster.Plan{Callers: callers, PerSecond: 160, Retry: true, Wire: cluster.HTTP})
		noise := c.Noise()
		pause(2 * time.Second)
		died := killLeader(c)
		pause(time.Second)
		died.Start()
		pause(15 * time.Second)
		c.AwaitReady()
		calls := load.Stop()
		for _, k := range callers {
			own := cluster.Of(calls, k)
			t.Logf("%s: %s", k.Policy.Function(), told(own))
			if got := len(cluster.Admitted(own)); got > limit {
				t.Errorf("%s: %d admitted, the limit is %d", k.Policy.Function(), got, limit)
			}
		}
		wantDecided(t, calls, func(c cluster.Call) bool { return cluster.Broken(c.Err) })
		wantBounded(t, calls, noise.Stop())
		wantDegraded(t, calls)
	})
}

// mortal is a process that can be started again.
type mortal interface {
	Start()
	Kill()
}

// killLeader kills the process that leads the counters' bucket.
func killLeader(c *cluster.Cluster) mortal {
	var leader mortal
	if len(c.Servers()) > 0 {
		leader = c.LeaderServer()
	} else {
		leader = c.Leader()
	}
	leader.Kill()
	return leader
}

// wantBounded: nobody waited for the store longer than was configured. noise is
// calls that nothing limits.
func wantBounded(t *testing.T, calls, noise []cluster.Call) {
	t.Helper()
	stall := cluster.Percentile(noise, 1)
	if got, most := cluster.Percentile(calls, 1), cluster.ProductAttempt+clientSlack+2*stall; got > most {
		t.Errorf("a call took %v, want at most %v", got, most)
	}
}

// wantDegraded: what was decided without the store says so, and the last
// seconds were decided with it.
func wantDegraded(t *testing.T, calls []cluster.Call) {
	t.Helper()
	const settled = 2 * time.Second
	degraded, late := 0, 0
	end := calls[len(calls)-1].End
	for _, c := range calls {
		if c.Degraded {
			degraded++
			if c.Start > end-settled {
				late++
			}
		}
	}
	if degraded == 0 {
		t.Error("the store was away and no decision says so")
	}
	if late > 0 {
		t.Errorf("%d decisions of the last %v were degraded", late, settled)
	}
}

// Row 14: one node is cut off from the store, the others are not. It spends its
// share, says so, and what it admitted is charged when it is back.
func TestRow14NodeCutOff(t *testing.T) {
	const limit, share, cut = 900, 200, 15 * time.Second
	policy := cluster.Policy{Rates: "900-H"}
	underLoad(t, cluster.ProductAttempt, []cluster.Policy{policy}, func(t *testing.T, c *cluster.Cluster) {
		// One budget is asked for only at the node that is cut off, the other
		// one at all nodes, more often than it is large.
		alone, shared := c.Fresh(policy), c.Fresh(policy)
		spend(t, c, alone, 300)
		spend(t, c, shared, 300)
		lonely := c.Node(3)
		lonely.CutOff()
		toLonely := c.Offer(cluster.Plan{
			Callers: []*cluster.Caller{alone}, Nodes: []*cluster.Node{lonely}, PerSecond: 30, Wire: cluster.HTTP,
		})
		toAll := c.Offer(cluster.Plan{Callers: []*cluster.Caller{shared}, PerSecond: 90, Wire: cluster.HTTP})
		noise := c.Noise()
		pause(cut)
		own := toLonely.Stop()
		lonely.Heal()
		all := func() []cluster.Call { pause(3 * time.Second); return toAll.Stop() }()
		t.Logf("at the node alone: %s", told(own))
		t.Logf("at all nodes: %s", told(all))
		wantDecided(t, append(all, own...), never)
		wantBounded(t, append(all, own...), noise.Stop())

		if got := len(cluster.Admitted(own)); got > share {
			t.Errorf("the node admitted %d alone, its share is %d", got, share)
		}
		if got := 300 + len(cluster.Admitted(all)); got > limit+share {
			t.Errorf("%d admitted at all nodes, want at most %d and the lonely node's share of %d", got, limit, share)
		}
		c.AwaitReady()
		c.AwaitSettled()
		left := limit - 300 - len(cluster.Admitted(own))
		alone.WantAdmitted(left+20, left)
		shared.WantAdmitted(10, 0)
	})
}

// spend admits units through all nodes and waits until no node holds any of them.
func spend(t *testing.T, c *cluster.Cluster, k *cluster.Caller, units int) {
	t.Helper()
	k.Spend(units)
	c.Await(10*time.Second, "all nodes know what remains", func() error {
		for _, n := range c.Nodes() {
			a := k.Look(n)
			if a.Remaining == nil || *a.Remaining != int64(900-units) {
				return fmt.Errorf("%s says %v", n.Name(), a.Remaining)
			}
		}
		return nil
	})
}
