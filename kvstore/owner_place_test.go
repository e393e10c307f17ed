package kvstore

import (
	"fmt"
	"testing"

	"github.com/headgate-io/headgate/ratelimit"
)

// TestOwnershipMovesLittle: a node that leaves moves only its own counters.
func TestOwnershipMovesLittle(t *testing.T) {
	list := newRoster("a", "b", "c", "d")
	p := &places{nodes: list}
	before := make(map[ratelimit.Key]string)
	share := make(map[string]int)
	for i := range 4000 {
		key := ratelimit.Key(fmt.Sprintf("f.v.account.%d", i))
		before[key] = p.owner(key)
		share[before[key]]++
	}
	for node, n := range share {
		if n < 800 || n > 1200 {
			t.Errorf("%s owns %d of 4000 counters", node, n)
		}
	}
	list.set("a", "b", "d")
	for key, owner := range before {
		if now := p.owner(key); owner != "c" && now != owner {
			t.Fatalf("a counter of %s moved to %s when c left", owner, now)
		}
	}
}
