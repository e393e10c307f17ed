package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// What the reviewers of the repaired limiter asked for. The counter's remaining
// time to live is in store_test.go.

// The draining node says so on every wire and still serves; no call reaches it
// after it began to settle.
func TestReviewDrainingNodeSaysSoAndServesUntilItSettles(t *testing.T) {
	t.Parallel()
	policy := cluster.Policy{Rates: "100000-H"}
	c := cluster.Start(t, cluster.Options{
		Shape: cluster.External, Policies: []cluster.Policy{policy}, DrainNotice: 2 * time.Second,
	})
	node, k := c.Node(1), c.Fresh(policy)
	if got := node.HealthOverGRPC(); got != "SERVING" {
		t.Errorf("the health of a ready node is %s", got)
	}
	loads := []*cluster.Load{
		c.Offer(cluster.Plan{Callers: []*cluster.Caller{k}, Nodes: []*cluster.Node{node}, PerSecond: 100}),
		c.Offer(cluster.Plan{Callers: []*cluster.Caller{k}, Nodes: []*cluster.Node{node}, PerSecond: 100, Wire: cluster.HTTP}),
	}
	pause(time.Second)
	node.Terminate()
	if !within(t, time.Second, func() bool { return node.Readyz().Status == http.StatusServiceUnavailable }) {
		t.Error("the draining node is still ready")
	}
	if h := node.Readyz(); h.Phase != "draining" {
		t.Errorf("the draining node is in phase %q", h.Phase)
	}
	if got := node.HealthOverGRPC(); got != "NOT_SERVING" {
		t.Errorf("the health of a draining node is %s", got)
	}
	if h := node.Livez(); h.Status != http.StatusOK {
		t.Errorf("the draining node answers livez with %d", h.Status)
	}
	if !k.Check(node, cluster.NVCF).Allowed || !k.Check(node, cluster.HTTP).Allowed {
		t.Error("the draining node does not serve")
	}
	if code := node.Wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	settling := node.LoggedAt(`"step":"settle"`)
	for _, l := range loads {
		for _, call := range l.Stop() {
			if call.Err == nil && call.Start > settling {
				t.Fatalf("a call reached the node %v after it began to settle", call.Start-settling)
			}
		}
	}
}

// A graceful stop that outlasts its bound is forced, and settlement still runs,
// inside the grace period.
func TestReviewStopThatOutlastsItsBoundIsForcedAndStillSettles(t *testing.T) {
	t.Parallel()
	const grace = time.Second
	policy := cluster.Policy{Rates: "1000-H"}
	c := cluster.Start(t, cluster.Options{
		Shape: cluster.External, Nodes: 1, Policies: []cluster.Policy{policy},
		DrainGrace: grace, // lifecycle.gracePeriod stays at 30 s
	})
	node, k := c.Node(1), c.Fresh(policy)
	held := node.HoldOpen(t) // a stream and a request that never end
	load := c.Offer(cluster.Plan{Callers: []*cluster.Caller{k}, PerSecond: 300, Retry: false})
	pause(time.Second)
	spent := len(cluster.Admitted(load.Stop()))
	began := time.Now()
	node.Terminate()
	code := node.Wait()
	took := time.Since(began)
	held()
	if code != 0 {
		t.Errorf("exit code %d, though everything was settled", code)
	}
	if took < grace || took > 10*time.Second {
		t.Errorf("the stop took %v: want the bound of %v, then settlement, within the grace period", took, grace)
	}
	node.Start()
	c.AwaitReady()
	if left := k.Look(node).Remaining; left == nil || *left != int64(1000-spent) {
		t.Errorf("%v remain after %d were spent of 1000: the leases were not handed back", left, spent)
	}
}

// Settlement retries what failed; what stays unsettled is counted, and success
// is not reported for it.
func TestReviewUnsettledIsCountedAndNotReportedAsSuccess(t *testing.T) {
	const perSecond = 100
	policy := cluster.Policy{Rates: "1000-H"}
	c := cluster.Start(t, cluster.Options{
		Shape: cluster.External, Nodes: 1, Servers: 1, Policies: []cluster.Policy{policy}, Attempt: cluster.ProductAttempt,
	})
	node, server, k := c.Node(1), c.Server(1), c.Fresh(policy)
	k.Spend(10)

	owe := func() (admitted int) {
		t.Helper()
		server.Freeze()
		load := c.Offer(cluster.Plan{Callers: []*cluster.Caller{k}, PerSecond: perSecond, Wire: cluster.HTTP})
		if !within(t, 5*time.Second, func() bool { return node.Metric("headgate_unsettled_units") > 20 }) {
			t.Error("a node that admits without its store owes nothing")
		}
		return len(cluster.Admitted(load.Stop()))
	}
	owe()
	node.Terminate()
	if code := node.Wait(); code != 1 {
		t.Errorf("exit code %d with units unsettled, want 1", code)
	}
	if node.LoggedAt("stopped with units unsettled") == 0 {
		t.Error("the log does not tell what stayed unsettled")
	}

	server.Thaw()
	node.Start()
	c.AwaitReady()
	c.AwaitSettled()
	before := *k.Look(node).Remaining
	owed := int64(owe())
	node.Terminate()
	pause(2 * time.Second) // it is settling, in vain so far
	server.Thaw()
	if code := node.Wait(); code != 0 {
		t.Errorf("exit code %d though the store came back in time, want 0", code)
	}
	node.Start()
	c.AwaitReady()
	// What was asked for while the store stood still may be charged as well, when
	// it goes on: a lease that nobody got, of one second's demand at most.
	if left := *k.Look(node).Remaining; left > before-owed || left < before-owed-perSecond {
		t.Errorf("%d remain, want %d less the %d that were owed", left, before, owed)
	}
}

// An acknowledged admission survives the loss of any one member at once.
func TestReviewAcknowledgedAdmissionSurvivesTheLossOfAnyMember(t *testing.T) {
	t.Parallel()
	for _, shape := range cluster.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			t.Parallel()
			policies := []cluster.Policy{{Rates: "10-H"}, {Rates: "10-H", Consistency: "exact"}}
			c := cluster.Start(t, cluster.Options{Shape: shape, Policies: policies})
			for _, p := range policies {
				k := c.Fresh(p)
				for _, n := range c.Nodes() {
					if !k.Check(n, cluster.NVCF).Allowed {
						t.Fatal("denied too early")
					}
					n.Kill() // with the answer hardly out
					n.Start()
					c.AwaitReady()
				}
				k.WantAdmitted(10, 7)
			}
		})
	}
}

// No account and no subject in any log line or metric, also when the subject
// holds what separates the parts of keys, labels and lines. The logs of every
// cluster of these tests are searched when it ends, at level debug.
func TestReviewNoCallerInLogsOrMetrics(t *testing.T) {
	t.Parallel()
	policies := []cluster.Policy{{Rates: "10-H", Subject: "3-H"}, {Rates: "10-H", Subject: "3-H", Consistency: "delayed"}}
	c := cluster.Start(t, cluster.Options{Shape: cluster.Embedded, Policies: policies})
	var callers []*cluster.Caller
	for _, p := range policies {
		for _, separator := range []string{"|", ".", "/", " ", ":", "*", ">", "=", "\"", "é"} {
			k := c.FreshSubject(p, separator)
			k.Send(5)
			callers = append(callers, k)
		}
	}
	c.AskBadly(callers[0]) // what is refused is not repeated either
	c.Node(1).Kill()
	c.StartAll()
	for _, n := range c.Nodes() {
		text := n.MetricsText()
		for _, k := range callers {
			for _, part := range k.Marks {
				if strings.Contains(text, part) {
					t.Errorf("the metrics of %s tell a caller", n.Name())
				}
			}
		}
	}
}
