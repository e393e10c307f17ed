package e2e

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// The promise in one story: of 10 per hour, 4 checks, SIGTERM, 3 checks,
// SIGKILL, 10 checks: exactly 10 in all. Over each wire, for a node alone and for
// one beside a NATS server that is killed as well.
func TestBudgetSurvivesTheProcess(t *testing.T) {
	t.Parallel()
	policy := cluster.Policy{Rates: "10-H"}
	for _, shape := range cluster.Shapes() {
		for _, wire := range []cluster.Wire{cluster.NVCF, cluster.HTTP} {
			t.Run(fmt.Sprintf("%v over %v", shape, wire), func(t *testing.T) {
				t.Parallel()
				c := cluster.Start(t, cluster.Options{
					Shape: shape, Nodes: 1, Servers: 1, Policies: []cluster.Policy{policy},
				})
				budget, node := c.Fresh(policy), c.Node(1)
				admitted := admit(budget, node, wire, 4)
				node.Stop()
				node.Start()
				c.AwaitReady()
				admitted += admit(budget, node, wire, 3)
				node.Kill()
				for _, s := range c.Servers() {
					s.Kill()
				}
				c.StartServers()
				node.Start()
				c.AwaitReady()
				admitted += admit(budget, node, wire, 10)
				if admitted != 10 {
					t.Errorf("%d admitted in all, want exactly 10", admitted)
				}
			})
		}
	}
}

// admit sends checks to one node and counts what it admits.
func admit(k *cluster.Caller, n *cluster.Node, w cluster.Wire, checks int) int {
	admitted := 0
	for range checks {
		if k.Check(n, w).Allowed {
			admitted++
		}
	}
	return admitted
}

// Case 12: 1000 per hour, 5000 checks by 64 workers: exactly 1000 in each of 10
// runs, in both modes that promise it, on one node alone and on three beside
// three servers.
func TestCase12ExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	const limit, checks, workers, runs = 1000, 5000, 64, 10
	policies := []cluster.Policy{{Rates: "1000-H"}, {Rates: "1000-H", Consistency: "exact"}}
	for _, o := range []cluster.Options{
		{Shape: cluster.Embedded, Nodes: 1, Policies: policies},
		{Shape: cluster.External, Policies: policies},
	} {
		t.Run(o.Shape.String(), func(t *testing.T) {
			t.Parallel()
			c := cluster.Start(t, o)
			for _, p := range policies {
				for run := range runs {
					k := c.Fresh(p)
					if got := hammer(c, k, checks, workers); got != limit {
						t.Errorf("%s, run %d: %d admitted, want exactly %d", p.Function(), run+1, got, limit)
					}
				}
			}
		})
	}
}

// hammer sends checks from many workers over all nodes in turn and counts what
// is admitted.
func hammer(c *cluster.Cluster, k *cluster.Caller, checks, workers int) int {
	var turn, admitted atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				i := int(turn.Add(1))
				if i > checks {
					return
				}
				if k.Check(c.Nodes()[i%len(c.Nodes())], cluster.NVCF).Allowed {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	return int(admitted.Load())
}

// Case 16: one key, 200 clients over three nodes: nobody gets an error, the
// decisions are exact, and writers hardly ever meet.
func TestCase16OneKeyManyClients(t *testing.T) {
	t.Parallel()
	const limit, clients, maxRetries = 2000, 200, 1.5
	for _, mode := range []string{"leased", "exact"} {
		t.Run(mode, func(t *testing.T) {
			policy := cluster.Policy{Rates: "2000-H", Consistency: mode}
			c := cluster.Start(t, cluster.Options{Shape: cluster.External, Policies: []cluster.Policy{policy}})
			calls := c.Closed(c.Fresh(policy), clients, caseLength())
			t.Log(told(calls))
			wantDecided(t, calls, never)
			if got := len(cluster.Admitted(calls)); got != limit {
				t.Errorf("%d admitted, want exactly %d", got, limit)
			}
			writes := c.SumMetric("headgate_record_writes_total")
			conflicts := c.SumMetric("headgate_record_conflicts_total")
			t.Logf("%v writes, %v conflicts", writes, conflicts)
			if conflicts >= maxRetries*writes {
				t.Errorf("%v conflicts in %v writes", conflicts, writes)
			}
		})
	}
}

// caseLength is how long the cases last that are told to last 10 s: all of it
// with -long, enough to exhaust the budget many times otherwise.
func caseLength() time.Duration {
	if *long {
		return 10 * time.Second
	}
	return 4 * time.Second
}
