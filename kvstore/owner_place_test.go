package kvstore

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// TestSilenceEnds: one exchange tries the owner again after a while, and when
// it answers everybody does.
func TestSilenceEnds(t *testing.T) {
	const least = time.Minute
	p := &places{nodes: newRoster("a", "b"), cfg: ownerConfig{Answer: time.Second, SilenceLeast: least, SilenceMost: 3 * least}}
	now := time.Now()
	var key ratelimit.Key
	for i := 0; key == "" || p.owner(key, now) != "b"; i++ {
		key = ratelimit.Key(fmt.Sprint(i))
	}
	expect := func(at time.Duration, want, when string) {
		t.Helper()
		if got := p.owner(key, now.Add(at)); got != want {
			t.Errorf("%s: %q owns it, want %q", when, got, want)
		}
	}
	p.silent("b", now)
	p.silent("b", now.Add(time.Millisecond)) // one silence, noticed twice
	expect(least-1, "a", "passed over")
	expect(least, "b", "tried again")
	expect(least, "a", "while it is tried")
	p.silent("b", now.Add(least))
	expect(3*least-1, "a", "passed over twice as long")
	expect(3*least, "b", "tried again")
	p.silent("b", now.Add(3*least))
	expect(6*least-1, "a", "passed over as long as may be")
	expect(6*least, "b", "tried again")
	p.spoke("b")
	expect(6*least, "b", "answered")
	expect(6*least, "b", "answered")
}

// TestOwnershipMovesLittle: a node that leaves moves only its own counters.
func TestOwnershipMovesLittle(t *testing.T) {
	list := newRoster("a", "b", "c", "d")
	p := &places{nodes: list}
	before := make(map[ratelimit.Key]string)
	share := make(map[string]int)
	for i := range 4000 {
		key := ratelimit.Key(fmt.Sprintf("f.v.account.%d", i))
		before[key] = p.owner(key, time.Now())
		share[before[key]]++
	}
	for node, n := range share {
		if n < 800 || n > 1200 {
			t.Errorf("%s owns %d of 4000 counters", node, n)
		}
	}
	list.set("a", "b", "d")
	for key, owner := range before {
		if now := p.owner(key, time.Now()); owner != "c" && now != owner {
			t.Fatalf("a counter of %s moved to %s when c left", owner, now)
		}
	}
}
