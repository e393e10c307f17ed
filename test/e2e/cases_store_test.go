package e2e

import (
	"net/http"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// Case 6: every round trip to the store takes long. The node is ready soon, or
// says that it is not and stays; it never goes down.
func TestCase06SlowStore(t *testing.T) {
	const soon = 5 * time.Second
	for _, roundTrip := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(roundTrip.String(), func(t *testing.T) {
			c := cluster.Start(t, cluster.Options{Shape: cluster.External, Nodes: 1, Cuttable: true, Later: true, Attempt: cluster.ProductAttempt})
			c.StartServers()
			node := c.Node(1)
			node.SlowDown(roundTrip)
			start := time.Now()
			node.Start()
			ready := within(t, soon, func() bool { return node.Readyz().Status == http.StatusOK })
			t.Logf("ready: %v after %v", ready, time.Since(start))
			if h := node.Livez(); h.Status != http.StatusOK {
				t.Errorf("not alive: %d %s", h.Status, h.Body)
			}
			if h := node.Readyz(); !ready && h.Status != http.StatusServiceUnavailable {
				t.Errorf("neither ready nor not ready: %d %s", h.Status, h.Body)
			}
			if !node.Running() {
				t.Error("the node went down")
			}
		})
	}
}

// within polls until it holds; false when it does not within the bound.
func within(t *testing.T, bound time.Duration, holds func() bool) bool {
	t.Helper()
	end := time.NewTimer(bound)
	defer end.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end.C:
			return false
		}
	}
	return true
}

// Case 7: the node starts 20 s before its NATS.
func TestCase07NodeBeforeItsStore(t *testing.T) {
	t.Parallel()
	const alone, soon = 20 * time.Second, 2 * time.Second
	policy := cluster.Policy{Rates: "10-H"}
	c := cluster.Start(t, cluster.Options{
		Shape: cluster.External, Nodes: 1, Servers: 1, Later: true, Policies: []cluster.Policy{policy},
	})
	node := c.Node(1)
	node.Start()
	began := time.Now()
	asked := 0
	within(t, alone, func() bool {
		h, live := node.Readyz(), node.Livez()
		if h.Status == 0 && time.Since(began) < soon { // not listening yet
			return false
		}
		asked++
		if h.Status != http.StatusServiceUnavailable || live.Status != http.StatusOK {
			t.Errorf("without its store it answers readyz %d, livez %d", h.Status, live.Status)
			return true
		}
		return false
	})
	if asked == 0 {
		t.Fatal("the node never answered")
	}
	c.StartServers()
	if !within(t, soon, func() bool { return node.Readyz().Status == http.StatusOK }) {
		t.Errorf("not ready %v after its store came: %s", soon, node.Readyz().Body)
	}
	c.Fresh(policy).WantAdmitted(12, 10)
}

// Case 8: the store goes away under a node whose policies deny without it.
func TestCase08DenyingNodeIsNotReadyWithoutItsStore(t *testing.T) {
	const out, back = 5 * time.Second, 2 * time.Second
	policy := cluster.Policy{Rates: "10-H", OnStoreFailure: "deny"}
	c := cluster.Start(t, cluster.Options{
		Shape: cluster.External, Nodes: 1, Servers: 1, Policies: []cluster.Policy{policy}, Attempt: cluster.ProductAttempt,
	})
	node, server := c.Node(1), c.Server(1)
	alive := func() {
		t.Helper()
		if h := node.Livez(); h.Status != http.StatusOK {
			t.Errorf("livez answers %d: %s", h.Status, h.Body)
		}
	}
	for _, away := range []struct {
		how        string
		take, give func()
	}{
		{"killed", server.Kill, func() { server.Start(); server.AwaitServing() }},
		{"frozen", server.Freeze, server.Thaw},
	} {
		away.take()
		if !within(t, out, func() bool { alive(); return node.Readyz().Status == http.StatusServiceUnavailable }) {
			t.Errorf("still ready %v after the store was %s: %s", out, away.how, node.Readyz().Body)
		}
		away.give()
		if !within(t, back, func() bool { alive(); return node.Readyz().Status == http.StatusOK }) {
			t.Errorf("not ready %v after the store was back (%s): %s", back, away.how, node.Readyz().Body)
		}
		c.AwaitReady()
	}
}

// Case 11: a fixed window of 100 per second under 500 clients.
func TestCase11FixedWindowUnderManyClients(t *testing.T) {
	t.Parallel()
	const limit, clients, least = 100, 500, 0.99
	length := caseLength()
	policy := cluster.Policy{Rates: "[{units: 100, period: 1s, algorithm: fixed}]"}
	c := cluster.Start(t, cluster.Options{Shape: cluster.External, Policies: []cluster.Policy{policy}})
	calls := c.Closed(c.Fresh(policy), clients, length)
	t.Log(told(calls))
	wantDecided(t, calls, never)
	// A span of n seconds touches at most n+1 windows.
	for n := 1; time.Duration(n)*time.Second < length; n++ {
		if got := cluster.MostInSpan(calls, time.Duration(n)*time.Second); got > limit*(n+1) {
			t.Errorf("%d admitted in %d s, which touch %d windows of %d", got, n, n+1, limit)
		}
	}
	want := int(least * limit * length.Seconds())
	if got := len(cluster.Admitted(calls)); got < want {
		t.Errorf("%d admitted in %v, want at least %d", got, length, want)
	}
}
