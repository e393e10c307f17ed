package kvstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// An owner that is lost costs nobody more than one attempt: whoever was asking
// it, or still asks it, gets its unit within the bound of that one exchange, and
// each unit is charged once. The owner gets a fifth of the bound, as it gets less
// than half in production; all is far longer than there, so that a machine that
// stands still for a moment does not pass for a lost owner.
func TestLostOwnerCostsOneAttempt(t *testing.T) {
	const attempt, answer = 2 * time.Second, 400 * time.Millisecond
	for _, c := range []struct {
		name      string
		lose, end func(*owners)
	}{
		{"killed", func(o *owners) { o.settler.bucket.js.Conn().Close() }, func(*owners) {}},
		// It hears, and does nothing.
		{"frozen", func(o *owners) { o.mu.Lock() }, func(o *owners) { o.mu.Unlock() }},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t, 3)
			nodes := b.members(t, 7, ownerConfig{Answer: answer})
			asking, owner := nodes[:6], nodes[6]
			a := asker{bound: attempt, key: keyOwnedBy(t, owner, owner.node)}
			const each = 50
			var all sync.WaitGroup
			for _, o := range asking { // a node has one exchange of a counter at a time
				all.Go(func() {
					for range each {
						a.ask(t, o)
					}
				})
			}
			total := int64(len(asking) * each)
			if !within(bedWait, func() bool { return a.granted.Load() > total/4 }) {
				t.Error("the owner settles nothing")
			}
			c.lose(owner)
			all.Wait()
			c.end(owner)

			// An owner that moves again finds all that it missed, and none of it is due.
			asking[0].ready(owner.node, attempt)
			if err := owner.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			granted, doubted, charged := a.granted.Load(), a.doubted.Load(), b.spent(t, asking[0], a.key)
			if granted+doubted != total || charged < granted || charged > total {
				t.Errorf("%d granted and %d in doubt of %d, %d charged", granted, doubted, total, charged)
			}
		})
	}
}

// asker asks for single units of one counter, each within a bound.
type asker struct {
	bound            time.Duration
	key              ratelimit.Key
	granted, doubted atomic.Int64
}

// ask gets one unit. What nobody can tell any more, since the machine stood still
// for as long as records remember, is in doubt; anything else is a fault.
func (a *asker) ask(t *testing.T, o *owners) {
	ctx, cancel := context.WithTimeout(t.Context(), a.bound)
	defer cancel()
	g, err := o.Exchange(ctx, named(o.node, needs(a.key, perDay(10_000), 1)))
	switch {
	case err == nil:
		a.granted.Add(g.Units)
	case errors.Is(err, ratelimit.ErrForgotten):
		a.doubted.Add(1)
	default:
		t.Errorf("exchange of %s: %v", o.node, err)
	}
}
