package ratelimit

import (
	"math"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// A node decides by itself in two cases: under `delayed`, and while the store is
// away. It then grants itself a lease of what it believes to be available: the
// counter as last seen, aged to now, with its own unposted admissions charged to
// it. What was taken from such a lease is posted.

// decideDelayed takes cost units from a lease that the node grants itself, of
// what the other nodes are not expected to take meanwhile. It reports false for
// the last units of a counter that other nodes spend too: nodes that see the
// same unit would all take it, so those are asked of the store.
// The lock is held.
func (c *cell) decideDelayed(l *Limiter, p *plan, now counter.Instant, cost int64) (verdict, bool) {
	view := c.lookLocally(p, now)
	free := max(0, view.Available(p.rates, now)-c.work.waited())
	spare := free - c.work.expected()
	switch {
	case spare >= cost:
		c.lease.Store(c.selfGrant(view, p, now, spare, false))
		l.look(c)
		return c.takeLocked(now, cost), true
	case free >= cost && free <= aheadFrom:
		return verdict{}, false
	}
	return c.refuseLocally(l, p, view, now, cost, free, false), true
}

// lookLocally ends the current lease and returns the view without it.
func (c *cell) lookLocally(p *plan, now counter.Instant) *counter.Counter {
	c.retire(c.lease.Swap(nil), now)
	return c.viewAt(p, now)
}

func (c *cell) refuseLocally(l *Limiter, p *plan, view *counter.Counter, now counter.Instant, cost, free int64, degraded bool) verdict {
	d := localDenial(view, p, now, cost, free, degraded, l.cfg.SyncInterval)
	d.asked.Store(true)
	l.look(c)
	c.denial.Store(d)
	return d.verdict(p, now, cost)
}

func (c *cell) takeLocked(now counter.Instant, cost int64) verdict {
	ls := c.lease.Load()
	if !ls.live(now) {
		return verdict{}
	}
	left, ok := ls.take(cost)
	if !ok {
		return verdict{}
	}
	return verdict{outcome: taken, lease: ls, remaining: left + ls.rest, degraded: ls.degraded}
}

// selfGrant makes a lease of units that the node grants itself. What is taken
// from it is posted to where it ends: held a little too long, never let go too
// soon. Fixed windows open with their first unit, and the lease is within one of
// each, so where there are only those it is posted to where it begins.
func (c *cell) selfGrant(view *counter.Counter, p *plan, now counter.Instant, units int64, degraded bool) *lease {
	ls := newLease(units, view.LeaseEnd(p.rates, now, p.life), 0)
	ls.low, ls.degraded, ls.dated = -1, degraded, ls.until
	if p.fixed && p.slice == 0 {
		ls.dated = now
	}
	return ls
}

// localDenial is the denial of a node that decides by itself. Where the share
// and not the window denies, nobody can tell when that changes; it is looked at
// again after a sync interval, and the first rate stands for all.
func localDenial(view *counter.Counter, p *plan, now counter.Instant, cost, free int64, degraded bool, again time.Duration) *denial {
	state := view.Clone()
	if !degraded {
		if d := newDenial(&state, p, now, cost); d != nil {
			return d
		}
	}
	rate, next, _ := state.Limiting(p.rates, now, cost)
	retry := max(again, next.Sub(now))
	return &denial{cost: cost, until: now.Add(again), rate: p.rateAt(max(rate, 0)), remaining: free, retry: retry, degraded: degraded}
}

// viewAt is the counter as the node believes it to be: as last seen, with what
// it admitted since. The lock is held.
func (c *cell) viewAt(p *plan, now counter.Instant) *counter.Counter {
	w := c.busy()
	if w.view == nil {
		view := c.seen.Clone()
		for _, list := range [...][]Post{w.flying, w.posts} {
			for _, post := range list {
				view.Post(p.rates, post.Units, post.At, now)
			}
		}
		w.view = &view
	}
	return w.view
}

const (
	// othersFade is how much of the most that the other nodes took in a sync
	// interval still counts an interval later.
	othersFade = 0.9
	// paceMemory is for about how many sync intervals what they took is remembered
	// as their pace.
	paceMemory = 5
)

// watchOthers notes what the other nodes took since the counter was last seen,
// per sync interval: what there is less than this node's own dealing explains.
// The lock is held; seen is that of before the grant.
func (c *cell) watchOthers(p *plan, x Exchange, g Grant, sync time.Duration) {
	span := g.At.Sub(c.seenAt)
	if !c.known || span <= 0 {
		return
	}
	free := c.seen.Available(p.rates, g.At) - g.Units
	for _, post := range x.Posts {
		free -= post.Units
	}
	for _, r := range x.Returns {
		free += r.Units
	}
	w, intervals := c.work, span.Seconds()/sync.Seconds()
	took := float64(max(0, free-g.State.Available(p.rates, g.At)))
	fresh := took / max(1, intervals)
	if fresh < w.others && free <= min(w.expected(), aheadFrom) {
		return // nobody took from what was left: that says nothing of what they want
	}
	w.others = max(fresh, math.Pow(othersFade, intervals)*w.others)
	w.pace += (1 - math.Exp(-intervals/paceMemory)) * (took/span.Seconds() - w.pace)
}

// quietOthers is below how many units per sync interval the other nodes count as
// not spending at all.
const quietOthers = 0.05

// expected is how many units the other nodes may have taken unseen, and may take
// until they are seen: what they post was admitted up to two sync intervals ago,
// and this node's next look is one away. One more is for their last units, which
// they take from the store.
func (w *work) expected() int64 {
	if w.others < quietOthers {
		return 0
	}
	return int64(math.Ceil(3*w.others)) + 1
}
