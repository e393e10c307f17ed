package cluster

import (
	"sync"
	"testing"
)

// reporter is the test that hears of what goes wrong now: a cluster outlives
// the subtests that share it.
type reporter struct {
	mu  sync.Mutex
	now testing.TB
}

func (r *reporter) tb() testing.TB {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *reporter) set(tb testing.TB) (before testing.TB) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, r.now = r.now, tb
	return before
}

// In makes a subtest the one that fails by what the cluster does, until it ends.
// The subtests of a cluster must not run in parallel.
func (c *Cluster) In(tb testing.TB) *Cluster {
	before := c.set(tb)
	tb.Cleanup(func() {
		c.set(before)
		if tb.Failed() {
			c.tail(tb)
		}
	})
	return c
}
