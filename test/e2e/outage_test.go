package e2e

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// The whole store stands still for 4 s and comes back. Each node spends its share
// of what was left, says so, and posts it: all together the limit, but for what
// crossed at the moment of the cut, which is what a node leases in a second.
func TestOutageOfTheWholeStoreKeepsTheLimit(t *testing.T) {
	const limit, perSecond, away = 1000, 240, 4 * time.Second
	// What a node saw last lacks what the others leased since, and a lease lives
	// for a second at most.
	const crossed = perSecond * (nodes - 1) / nodes
	policy := cluster.Policy{Rates: "1000-H"}
	c := cluster.Start(t, cluster.Options{
		Shape: cluster.External, Policies: []cluster.Policy{policy}, Attempt: cluster.ProductAttempt,
	})
	load := c.Offer(cluster.Plan{Callers: []*cluster.Caller{c.Fresh(policy)}, PerSecond: perSecond, Wire: cluster.HTTP})
	pause(1500 * time.Millisecond)
	for _, s := range c.Servers() {
		s.Freeze()
	}
	pause(away)
	for _, s := range c.Servers() {
		s.Thaw()
	}
	c.AwaitReady()
	c.AwaitSettled()
	pause(3 * time.Second)
	calls := load.Stop()
	t.Log(told(calls))
	wantDecided(t, calls, never)
	wantDegraded(t, calls)
	if got := len(cluster.Admitted(calls)); got > limit+crossed {
		t.Errorf("%d admitted, the limit is %d and %d may have crossed the cut", got, limit, crossed)
	}
}

// nodes is how many a cluster has unless told otherwise.
const nodes = 3
