package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// holdCheck is how often a hold looks whether all is settled. Each exchange
// that it waits for is bounded by Config.Attempt.
const holdCheck = 2 * time.Millisecond

// MaxLease is the longest that any lease lives, by the store's clock: of a node
// that cannot be asked, no lease of before outlives it.
const MaxLease = maxLease

// holds are the counters that operators hold at this node, by how many of them.
type holds struct {
	mu    sync.Mutex
	byKey map[Key]int
	some  atomic.Bool // cheap to ask where cells are made
}

func (h *holds) add(key Key, n int) (held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byKey == nil {
		h.byKey = make(map[Key]int)
	}
	if h.byKey[key] += n; h.byKey[key] <= 0 {
		delete(h.byKey, key)
	}
	h.some.Store(len(h.byKey) > 0)
	return h.byKey[key] > 0
}

func (h *holds) has(key Key) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.byKey[key] > 0
}

// Hold ends this node's leases on a counter, has all that it owes settled, and
// grants nobody anything until release is called; invocations wait meanwhile,
// no longer than they ever do. An operator who resets a counter holds it at
// every node first, so that no lease of before the reset outlives it.
//
// The error is the context's, when it ended before all was settled; the counter
// is then not held. Release may be called more than once.
func (l *Limiter) Hold(ctx context.Context, key Key) (release func(), err error) {
	l.held.add(key, 1)
	var once sync.Once
	release = func() { once.Do(func() { l.releaseHold(key) }) }
	cells := l.cellsOf(key)
	for _, c := range cells {
		l.hold(c)
	}
	ticker := time.NewTicker(holdCheck)
	defer ticker.Stop()
	for !settledAll(cells) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
	return release, nil
}

func (l *Limiter) hold(c *cell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.busy()
	w.held = true
	c.retireAll(l.clock.Now())
	if c.owed() > 0 || w.doubt != nil {
		l.enqueue(c)
	}
}

func settledAll(cells []*cell) bool {
	for _, c := range cells {
		c.mu.Lock()
		busy := c.owed() > 0 || (c.work != nil && (c.work.queued || c.work.doubt != nil))
		c.mu.Unlock()
		if busy {
			return false
		}
	}
	return true
}

func (l *Limiter) releaseHold(key Key) {
	if l.held.add(key, -1) {
		return
	}
	for _, c := range l.cellsOf(key) {
		c.mu.Lock()
		c.busy().held = false
		c.work.refresh = true
		c.work.view, c.known = nil, false
		c.denial.Store(nil)
		l.enqueue(c)
		c.mu.Unlock()
	}
}

// Leased is what this node may spend of a counter without asking, and until
// when; zero when it holds no lease.
func (l *Limiter) Leased(key Key) (units int64, until counter.Instant) {
	now := l.clock.Now()
	for _, c := range l.cellsOf(key) {
		n, end := c.leased(now)
		units, until = units+n, max(until, end)
	}
	return units, until
}

// leased is what the cell's leases hold that are charged to the counter.
func (c *cell) leased(now counter.Instant) (units int64, until counter.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	leases := [...]*lease{c.lease.Load(), nil}
	if c.work != nil {
		leases[1] = c.work.next
	}
	for _, ls := range leases {
		if ls.live(now) && ls.charged != 0 && ls.units() > 0 {
			units, until = units+ls.units(), max(until, ls.until)
		}
	}
	return units, until
}

// cellsOf finds the cells of a counter, by going through those of its function.
func (l *Limiter) cellsOf(key Key) (found []*cell) {
	parts, err := ParseKey(key)
	if err != nil {
		return nil
	}
	for _, s := range l.scopes.Range {
		if escape(s.function) != escapedFunction(key) {
			continue
		}
		for c := range s.cells(parts.Tier) {
			if k, ok := l.keyOf(c); ok && k == key {
				found = append(found, c)
			}
		}
	}
	return found
}

// keyOf names the counter of a cell; see [Keyring.Key].
func (l *Limiter) keyOf(c *cell) (Key, bool) {
	return l.keys.Key(c.tier, c.scope.function, c.scope.version, c.account, c.subject)
}
