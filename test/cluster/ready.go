package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// readyBound is the longest that a test waits for a node or a server.
const readyBound = 60 * time.Second

// pollEvery is the time between two looks.
const pollEvery = 20 * time.Millisecond

// await polls until nothing is wrong, or fails the test.
func await(tb testing.TB, bound time.Duration, what string, wrong func() error) {
	tb.Helper()
	patience := time.NewTimer(bound)
	defer patience.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := wrong()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-patience.C:
			tb.Fatalf("not within %v: %s: %v", bound, what, err)
		}
	}
}

// Await polls until nothing is wrong, or fails the test after bound.
func (c *Cluster) Await(bound time.Duration, what string, wrong func() error) {
	c.tb().Helper()
	await(c.tb(), bound, what, wrong)
}

// Health is what a node says of itself.
type Health struct {
	Status   int    `json:"-"` // of HTTP; 0 when nobody answered
	Phase    string `json:"phase"`
	Ready    bool   `json:"ready"`
	Degraded bool   `json:"degraded"`
	Body     string `json:"-"`
}

// Readyz asks the node whether callers should be sent to it.
func (n *Node) Readyz() Health { return n.health("readyz") }

// Livez asks the node whether it works.
func (n *Node) Livez() Health { return n.health("livez") }

func (n *Node) health(path string) Health {
	body, status, err := n.get("http://" + at(n.host, portAdmin) + "/" + path)
	if err != nil {
		return Health{Body: err.Error()}
	}
	h := Health{Status: status, Body: string(body)}
	if err := json.Unmarshal(body, &h); err != nil {
		n.tb().Errorf("%s of %s is no JSON: %v", path, n.Name(), err)
	}
	return h
}

// get asks the admin listener, which answers at once or not at all.
func (n *Node) get(url string) (body []byte, status int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	resp, err := n.wire.http.Do(req)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(resp.Body)
	return body, resp.StatusCode, err
}

// AwaitReady waits until all running nodes are ready, and none is degraded.
func (c *Cluster) AwaitReady() {
	c.tb().Helper()
	for _, n := range c.nodes {
		if n.Running() {
			n.AwaitReady()
		}
	}
}

// AwaitReady waits until the node is ready, and not degraded.
func (n *Node) AwaitReady() {
	n.tb().Helper()
	await(n.tb(), readyBound, n.Name()+" is ready", func() error {
		if !n.Running() {
			n.tb().Fatalf("%s is not running", n.Name())
		}
		return n.unready()
	})
}

// unready says why the node is not ready, or is degraded.
func (n *Node) unready() error {
	if h := n.Readyz(); h.Status != http.StatusOK || h.Degraded {
		return fmt.Errorf("status %d: %s", h.Status, h.Body)
	}
	return nil
}

// AwaitNodes waits until every running node counts as many nodes alive.
func (c *Cluster) AwaitNodes(want int) {
	c.tb().Helper()
	for _, n := range c.nodes {
		if !n.Running() {
			continue
		}
		await(c.tb(), readyBound, fmt.Sprintf("%s counts %d nodes", n.Name(), want), func() error {
			if got := n.Metric("headgate_nodes"); int(got) != want {
				return fmt.Errorf("it counts %v", got)
			}
			return nil
		})
	}
}

// AwaitSettled waits until no running node owes the store anything.
func (c *Cluster) AwaitSettled() {
	c.tb().Helper()
	await(c.tb(), readyBound, "everything is settled", func() error {
		if owed := c.SumMetric("headgate_unsettled_units"); owed != 0 {
			return fmt.Errorf("%v units are not", owed)
		}
		return nil
	})
}
