package cluster

import (
	"context"
	"crypto/rand"
	"slices"
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
	// Marks are texts that nobody but the store may be told.
	Marks []string

	cluster *Cluster
	turn    atomic.Int64 // which node is next, and over which wire
}

// Fresh gives out a caller of the function that the policy is for.
func (c *Cluster) Fresh(p Policy) *Caller {
	c.tb().Helper()
	return c.FreshSubject(p, "|")
}

// FreshSubject is Fresh with a subject, where the policy counts by it, that
// holds a separator. The logs are searched for the parts, since a log may write
// the separator in its own way.
func (c *Cluster) FreshSubject(p Policy, separator string) *Caller {
	c.tb().Helper()
	if !slices.Contains(c.opts.Policies, p) {
		c.tb().Fatalf("no policy %+v in this cluster; see Options.Policies", p)
	}
	k := &Caller{Policy: p, cluster: c, Account: "acct-" + rand.Text()}
	k.Marks = []string{k.Account}
	if p.Subject != "" {
		first, second := "subj-"+rand.Text(), "subj-"+rand.Text()
		k.Subject = first + separator + second
		k.Marks = append(k.Marks, first, second)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callers = append(c.callers, k.Marks...)
	return k
}

// Unlimited gives out a caller of a function without a policy.
func (c *Cluster) Unlimited() *Caller {
	k := &Caller{Policy: Policy{Rates: "none"}, cluster: c, Account: "acct-" + rand.Text()}
	k.Marks = []string{k.Account}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.callers = append(c.callers, k.Marks...)
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

// Send asks the running nodes one after the other, over one wire and then the
// other, and counts what was admitted; pattern shows each answer.
func (k *Caller) Send(units int) (admitted int, pattern string) {
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
	if got, pattern := k.Send(sent); got != want {
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
