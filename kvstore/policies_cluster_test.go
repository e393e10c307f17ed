package kvstore

import (
	"fmt"
	"testing"
	"time"
)

// Three nodes with servers of their own: a change on one is in force on all
// within a second, by far.
func TestPolicies_threeNodes(t *testing.T) {
	stores := startStores(t, memberConfigs(t))
	awaitJoined(t, stores...)
	var feeds []*policyFeed
	var first *Policies
	for _, s := range stores {
		p, f := watchPolicies(t, s)
		first = p
		feeds = append(feeds, f)
		untilList(t, f)
	}
	var slowest time.Duration
	for i := range 20 {
		start := time.Now()
		rev, changed, err := first.Apply(t.Context(), of(t, fmt.Sprintf("function: f\ntotal: {rates: %d-S}\n", i)))
		if err != nil || !changed {
			t.Fatalf("apply: %v, changed %v", err, changed)
		}
		for _, f := range feeds {
			untilList(t, f, fmt.Sprintf("f/*@%d", rev))
		}
		slowest = max(slowest, time.Since(start))
	}
	if slowest > time.Second {
		t.Errorf("the slowest change took %s", slowest)
	}
	t.Logf("slowest of 20 changes, from apply to in force on all: %s", slowest)
}
