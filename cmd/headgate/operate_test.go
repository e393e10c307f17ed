package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/cmd/headgate/internal/client"
)

// adminEnv is the environment in which commands ask this node.
func (n *node) adminEnv() []string {
	return []string{"HEADGATE_SERVER=" + n.admin, "HEADGATE_CHECK_SERVER=" + n.http}
}

// The commands on a real node: a policy is in force as soon as apply returns,
// and what was spent is seen, granted and reset.
func TestOperate_oneNode(t *testing.T) {
	t.Parallel()
	n := startNode(t, "--data-dir", t.TempDir())
	environ := n.adminEnv()
	if !overHTTP(n, "acme") {
		t.Error("denied without a policy")
	}
	told{args: "policy apply -f -", stdin: "function: resize\naccount: {rates: 3-H}\nsubject: {rates: 2-H}\n", out: []string{"created"}}.check(t, environ)
	waitUntil(t, time.Second, func() bool {
		_, a := n.check("first")
		return len(a.Limits) == 1
	}, func() string { return "the policy is not in force" })

	const acme = " --function resize --version v1 --account acme"
	if got := admitted(n, overHTTP, "acme", 5); got != 3 {
		t.Errorf("%d of 5 admitted, want 3", got)
	}
	n.settled()
	for _, step := range []told{
		{args: "check --cost 0" + acme, code: 1, out: []string{"allowed      no", "account 3-H"}},
		{args: "counter get" + acme, out: []string{"acme      3-H   3      0"}},
		{args: "counter ls --function resize", out: []string{"acme      3-H   3      0", "first     3-H"}},
		{args: "counter grant --units 2" + acme, out: []string{"acme      3-H   1      2          now"}},
		{args: "check --subject jane" + acme, out: []string{"allowed    yes"}},
		{args: "counter ls --function resize --tier subject", out: []string{"subject"}},
		{args: "counter get --subject jane" + acme, out: []string{"subject  ", "2-H   1      1"}},
		{args: "counter reset" + acme, out: []string{"acme      3-H   0      3"}},
		{args: "status", out: []string{"node       n1", "phase      ready", "ready      yes", "degraded   no", "policies   1", "headgate_counters"}},
	} {
		step.check(t, environ)
	}
	if got := admitted(n, overHTTP, "acme", 5); got != 3 {
		t.Errorf("%d of 5 admitted after the reset, want 3", got)
	}
	if out := (told{args: "counter ls -o json --function resize"}).check(t, environ); strings.Contains(out, "jane") {
		t.Errorf("a subject is listed:\n%s", out)
	}
	told{args: "policy rm resize", out: []string{"removed"}}.check(t, environ)
	waitUntil(t, time.Second, func() bool { return overHTTP(n, "acme") }, func() string { return "the policy is still in force" })
	n.stop()
}

// startNodes starts nodes of a fleet beside one NATS server.
func startNodes(t *testing.T, count int, args ...string) []*node {
	t.Helper()
	nats := startNATS(t)
	nodes := make([]*node, count)
	for i := range nodes {
		nodes[i] = launchNode(t, append([]string{
			"--nats-url", nats.url, "--nats-replicas=1", fmt.Sprintf("--node-name=n%d", i+1),
		}, args...)...)
	}
	for _, n := range nodes {
		n.waitFor("/readyz", 200, patience)
	}
	waitUntil(t, patience, func() bool {
		for _, n := range nodes {
			if n.metric("headgate_nodes") != fmt.Sprint(count) {
				return false
			}
		}
		return true
	}, func() string { return "the nodes do not know each other" })
	return nodes
}

// admission is a call that was admitted, by when it was asked for.
type admission struct{ asked time.Time }

// Counters reset while three nodes hold leases and calls flow start over with
// the full budget, and never with more: what is asked for after the reset
// returned is admitted at most limit times, and with what was asked for during
// the reset at least so often.
func TestOperate_resetUnderLoad(t *testing.T) {
	t.Parallel()
	const limit = 2000
	nodes := startNodes(t, 3, "--policies", policyFile(t, fmt.Sprintf("function: resize\naccount: {rates: %d-H}\n", limit)))
	var mu sync.Mutex
	var all []admission
	stop := make(chan struct{})
	var callers sync.WaitGroup
	for _, n := range nodes {
		for range 2 {
			callers.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					asked := time.Now()
					if overHTTP(n, "acme") {
						mu.Lock()
						all = append(all, admission{asked})
						mu.Unlock()
					}
				}
			})
		}
	}
	count := func(since time.Time) int {
		mu.Lock()
		defer mu.Unlock()
		got := 0
		for _, a := range all {
			if a.asked.After(since) {
				got++
			}
		}
		return got
	}
	waitUntil(t, patience, func() bool { return count(time.Time{}) >= limit/2 }, func() string { return "no load" })
	began := time.Now()
	out := told{args: "counter reset -o json --function resize --version v1 --account acme"}.check(t, nodes[1].adminEnv())
	returned := time.Now()
	waitUntil(t, patience, func() bool { return count(began) >= limit }, func() string {
		return fmt.Sprintf("%d admitted since the reset, want %d", count(began), limit)
	})
	// All is spent now: were there more to have, the callers would get it.
	spent := time.Now()
	waitUntil(t, patience, func() bool { return time.Since(spent) > 500*time.Millisecond }, func() string { return "" })
	close(stop)
	callers.Wait()
	if got := count(returned); got > limit {
		t.Errorf("%d admitted of what was asked for after the reset, limit %d", got, limit)
	}
	var details []client.CounterDetail
	if err := json.Unmarshal([]byte(out), &details); err != nil || len(details) != 1 {
		t.Errorf("reset says %v\n%s", err, out)
	}
	told{args: "status", out: []string{"n1    ready", "n2    ready", "n3    ready"}}.check(t, nodes[0].adminEnv())
}

// A policy that is applied on one node is obeyed by all within a second.
func TestOperate_policyOnEveryNode(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 3)
	var slowest time.Duration
	for i := range 10 {
		limit := int64(100 + i)
		stdin := fmt.Sprintf("function: resize\naccount: {rates: %d-H}\n", limit)
		told{args: "policy apply -f -", stdin: stdin, out: []string{"resize"}}.check(t, nodes[i%3].adminEnv())
		began := time.Now()
		for _, n := range nodes {
			waitUntil(t, time.Second, func() bool {
				_, a := n.check("acme")
				return len(a.Limits) == 1 && a.Limits[0].Rate == fmt.Sprintf("%d-H", limit)
			}, func() string { return fmt.Sprintf("a node does not obey change %d", i) })
		}
		slowest = max(slowest, time.Since(began))
	}
	t.Logf("in force on all nodes after %v at most", slowest)
}

// A reset does not wait for a node that stands still longer than the node's leases
// can live, and says who was silent; when the node goes on it has none of them.
func TestOperate_resetWithASilentNode(t *testing.T) {
	t.Parallel()
	nodes := startNodes(t, 2, "--policies", policyFile(t, tenAnHour))
	if got := admitted(nodes[0], overHTTP, "acme", 4) + admitted(nodes[1], overHTTP, "acme", 3); got != 7 {
		t.Fatalf("%d of 7 admitted", got)
	}
	nodes[0].settled()
	nodes[1].settled()
	nodes[1].signal(syscall.SIGSTOP)
	t.Cleanup(func() { _ = nodes[1].cmd.Process.Signal(syscall.SIGCONT) }) // it may be gone
	const acme = " --function resize --version v1 --account acme"
	told{args: "counter reset" + acme, out: []string{
		"acme      10-H  0      10", "n2 may hold leases and did not answer",
	}}.check(t, nodes[0].adminEnv())
	nodes[1].signal(syscall.SIGCONT)
	nodes[1].waitFor("/readyz", 200, patience)
	waitUntil(t, patience, func() bool { return nodes[1].metric("headgate_degraded") == "0" }, func() string { return "n2 is degraded" })
	if got := admitted(nodes[1], overHTTP, "acme", 12) + admitted(nodes[0], overHTTP, "acme", 12); got != 10 {
		t.Errorf("%d of 24 admitted after the reset, want 10", got)
	}
}
