package e2e

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// Three processes on a three-server store, leased, offered twice the limit:
// never more than the limit in any span of one period, and at least 95 of 100 of
// what a window would admit that knows the instant of every admission. With
// -long over 60 s. It judges what is admitted in time, so it does not run beside
// others.
func TestLeasedKeepsTheLimitInAnySpan(t *testing.T) {
	length, least := 25*time.Second, 0.95
	if *long {
		length = time.Minute
	}
	limits := []struct {
		policy cluster.Policy
		limit  int
		period time.Duration
	}{
		{cluster.Policy{Rates: "1000-H"}, 1000, time.Hour},
		{cluster.Policy{Rates: "1000-M"}, 1000, time.Minute},
		{cluster.Policy{Rates: "500/10s"}, 500, 10 * time.Second},
	}
	var policies []cluster.Policy
	for _, l := range limits {
		policies = append(policies, l.policy)
	}
	c := cluster.Start(t, cluster.Options{Shape: cluster.External, Policies: policies})
	var loads []*cluster.Load
	for _, l := range limits {
		// Twice the limit in the shorter of its period and the time there is.
		rate := 2 * l.limit / int(min(l.period, length).Seconds())
		loads = append(loads, c.Offer(cluster.Plan{Callers: []*cluster.Caller{c.Fresh(l.policy)}, PerSecond: rate}))
	}
	pause(length)
	for i, l := range limits {
		calls := loads[i].Stop()
		wantDecided(t, calls, never)
		ideal := cluster.ExactWindow(calls, l.limit, l.period)
		most, admitted := cluster.MostInSpan(calls, l.period), len(cluster.Admitted(calls))
		t.Logf("%s: %s; at most %d in %v, an exact window admits %d", l.policy.Rates, told(calls), most, l.period, ideal)
		if most > l.limit {
			t.Errorf("%s: %d admitted in a span of %v", l.policy.Rates, most, l.period)
		}
		if float64(admitted) < least*float64(ideal) {
			t.Errorf("%s: %d admitted, an exact window admits %d", l.policy.Rates, admitted, ideal)
		}
	}
}

// A node that is killed while it holds leases: the limit holds, and what it held
// is no more than what it was asked for over one lease life.
func TestKilledNodeStrandsNoMoreThanItsLease(t *testing.T) {
	t.Parallel()
	const limit, perSecond, nodes, longestLease = 1000, 240, 3, 1 // leases live for 1 s at most
	policy := cluster.Policy{Rates: "1000-H"}
	c := cluster.Start(t, cluster.Options{Shape: cluster.External, Policies: []cluster.Policy{policy}})
	load := c.Offer(cluster.Plan{Callers: []*cluster.Caller{c.Fresh(policy)}, PerSecond: perSecond, Retry: true})
	pause(1500 * time.Millisecond)
	c.Node(2).Kill()
	pause(6 * time.Second)
	calls := load.Stop()
	admitted := len(cluster.Admitted(calls))
	t.Logf("%s; %d stranded", told(calls), limit-admitted)
	wantDecided(t, calls, never)
	if admitted > limit {
		t.Errorf("%d admitted of %d", admitted, limit)
	}
	if stranded, most := limit-admitted, longestLease*perSecond/nodes; stranded > most {
		t.Errorf("%d units were stranded, want at most %d", stranded, most)
	}
}
