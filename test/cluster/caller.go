package cluster

import (
	"context"
	"crypto/rand"
	"strings"
	"sync/atomic"
	"time"
)

// askBound is the longest that a counted question may take.
const askBound = 20 * time.Second

// Caller is an account that nobody used before, so its counters are fresh.
type Caller struct {
	Policy  Policy
	Account string
	Subject string

	cluster *Cluster
	turn    atomic.Int64 // which node is next, and over which wire
}

// Fresh gives out a caller of the function that the policy is for.
func (c *Cluster) Fresh(p Policy) *Caller {
	c.tb().Helper()
	known := false
	for _, other := range c.opts.Policies {
		known = known || other == p
	}
	if !known {
		c.tb().Fatalf("no policy %+v in this cluster; see Options.Policies", p)
	}
	k := &Caller{Policy: p, cluster: c, Account: "acct-" + rand.Text()}
	if p.Subject != "" {
		k.Subject = "subj-" + rand.Text() + "|x.y@example"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callers = append(c.callers, k.Account)
	if k.Subject != "" {
		c.callers = append(c.callers, k.Subject)
	}
	return k
}

// Question is what the caller asks.
func (k *Caller) Question() Question {
	return Question{Function: k.Policy.Function(), Version: "v1", Account: k.Account, Subject: k.Subject}
}

// Check asks one node over one wire. The test fails when there is no decision.
func (k *Caller) Check(n *Node, w Wire) Answer {
	tb := k.cluster.tb()
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), askBound)
	defer cancel()
	a, err := n.Ask(ctx, w, k.Question())
	if err != nil {
		tb.Errorf("%s gave no decision: %v", n.Name(), err)
	}
	if a.Degraded {
		tb.Errorf("%s decided without the store", n.Name())
	}
	return a
}

// send asks the running nodes one after the other, over one wire and then the
// other, and counts what was admitted.
func (k *Caller) send(units int) (admitted int, pattern string) {
	k.cluster.tb().Helper()
	var running []*Node
	for _, n := range k.cluster.nodes {
		if n.Running() {
			running = append(running, n)
		}
	}
	var answers strings.Builder
	for range units {
		turn := int(k.turn.Add(1))
		n, w := running[turn%len(running)], Wire(turn%2)
		if k.Check(n, w).Allowed {
			admitted++
			answers.WriteString("+")
		} else {
			answers.WriteString("-")
		}
	}
	return admitted, answers.String()
}

// Spend sends units invocations through all running nodes in turn; all must be
// admitted.
func (k *Caller) Spend(units int) {
	k.cluster.tb().Helper()
	k.WantAdmitted(units, units)
}

// WantAdmitted sends invocations through all running nodes in turn, of which
// want must be admitted.
func (k *Caller) WantAdmitted(sent, want int) {
	k.cluster.tb().Helper()
	if got, pattern := k.send(sent); got != want {
		k.cluster.tb().Errorf("%s: %d of %d admitted, want %d (%s)", k.Policy.Function(), got, sent, want, pattern)
	}
}

// Look is what the node says remains, without charging anything.
func (k *Caller) Look(n *Node) Answer {
	k.cluster.tb().Helper()
	ctx, cancel := context.WithTimeout(context.Background(), askBound)
	defer cancel()
	q := k.Question()
	q.Look = true
	a, err := n.Ask(ctx, HTTP, q)
	if err != nil {
		k.cluster.tb().Errorf("%s gave no answer: %v", n.Name(), err)
	}
	return a
}
