package chaos

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// limit and period of the counters that are watched for long; the load offers
// each about twice as much.
const (
	limit     = 200
	period    = 10 * time.Second
	perSecond = 2 * limit / 10
	// patience of the clients of those counters: so that what a frozen node
	// admits when it goes on is seen.
	patience = maxFault + 2*time.Second
)

// watched are policies whose counters are used from the first to the last fault.
func watched() []cluster.Policy {
	var policies []cluster.Policy
	for _, mode := range []string{"leased", "exact", "delayed"} {
		for _, away := range []string{"deny", "local"} {
			policies = append(policies, cluster.Policy{Rates: "200/10s", Consistency: mode, OnStoreFailure: away})
		}
	}
	return policies
}

// TestChaos holds the promise against faults.
func TestChaos(t *testing.T) {
	rage, from := *length, *seed
	if testing.Short() {
		rage /= 3
	}
	if from == 0 {
		from = rand.Uint64()
	}
	for _, shape := range cluster.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			t.Parallel()
			t.Logf("again: go test ./test/chaos -run 'TestChaos/%v' -chaos.for %v -chaos.seed %d", shape, rage, from)
			weather(t, shape, rage, from)
		})
	}
}

// weather is one run against one shape.
func weather(t *testing.T, shape cluster.Shape, rage time.Duration, from uint64) {
	short := cluster.Policy{Rates: "10-H", Consistency: "exact", OnStoreFailure: "deny"}
	c := cluster.Start(t, cluster.Options{
		Shape: shape, Policies: append(watched(), short), Cuttable: true,
		Attempt: cluster.ProductAttempt, Config: leaveSoon,
	})
	s := &storm{t: t, c: c, rng: rand.New(rand.NewPCG(from, uint64(shape))), base: time.Now()}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("faults:\n%s", strings.Join(s.told, "\n"))
		}
	})
	var loads []*cluster.Load
	var callers []*cluster.Caller
	for i, p := range watched() {
		callers = append(callers, c.Fresh(p))
		loads = append(loads, c.Offer(cluster.Plan{
			Callers: callers[i:], PerSecond: perSecond, Wire: cluster.HTTP, Deadline: patience,
		}))
	}
	histories := record(c, short)

	s.rage(shape, rage)

	var calls []cluster.Call
	for i, load := range loads {
		own := load.Stop()
		s.wantPromise(callers[i].Policy, own)
		calls = append(calls, own...)
	}
	exact := histories.stop()
	c.AwaitSettled()
	s.wantLinearizable(exact)
	s.wantOnlyTheDeadToFail(calls)
	for _, p := range c.Policies() {
		c.Fresh(p).WantAdmitted(5, 5) // all is well again
	}
}

// leaveSoon keeps shutdowns short that cannot settle.
const leaveSoon = "settle: {timeout: 3s}\n"
