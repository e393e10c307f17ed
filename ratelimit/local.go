package ratelimit

import (
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// A node decides by itself in two cases: under `delayed`, and while the store is
// away. It then grants itself a lease of what it believes to be available: the
// counter as last seen, aged to now, with its own unposted admissions charged to
// it. What was taken from such a lease is posted.

// decideLocally takes cost units from a lease that the node grants itself.
// share is the number of nodes that share what is available: 1 when the store
// answers. The lock is held.
func (c *cell) decideLocally(l *Limiter, p *plan, now counter.Instant, cost, share int64, degraded bool) verdict {
	c.rotate(now, cost)
	if v := c.takeLocked(now, cost); v.outcome == taken {
		return v
	}
	c.retire(c.lease.Swap(nil), now)
	view := c.viewAt(p, now)
	free := c.allowance(p, view, now, share)
	if free >= cost {
		c.lease.Store(c.selfGrant(view, p, now, free, degraded))
		l.look(c)
		return c.takeLocked(now, cost)
	}
	d := localDenial(view, p, now, cost, free, degraded, l.cfg.SyncInterval)
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

// selfGrant makes a lease of units that the node grants itself.
func (c *cell) selfGrant(view *counter.Counter, p *plan, now counter.Instant, units int64, degraded bool) *lease {
	ls := newLease(units, view.LeaseEnd(p.rates, now, p.life), 0)
	ls.low, ls.degraded = -1, degraded
	return ls
}

// localDenial is the denial of a node that decides by itself. Where the share
// and not the window denies, nobody can tell when that changes; it is looked at
// again after a sync interval.
func localDenial(view *counter.Counter, p *plan, now counter.Instant, cost, free int64, degraded bool, again time.Duration) *denial {
	state := view.Clone()
	if !degraded {
		if d := newDenial(&state, p, now, cost); d != nil {
			return d
		}
	}
	rate, next, _ := state.Limiting(p.rates, now, cost)
	retry := max(again, next.Sub(now))
	return &denial{cost: cost, until: now.Add(again), rate: uint8(max(0, rate)), remaining: free, retry: retry, degraded: degraded}
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

// allowance is how many units the node may still admit by itself, of a share-th
// part of what the counter had. All nodes together then stay within the limit,
// since none counts on what the others have.
func (c *cell) allowance(p *plan, view *counter.Counter, now counter.Instant, share int64) int64 {
	if share <= 1 {
		return view.Available(p.rates, now)
	}
	w := c.busy()
	if w.share == nil {
		w.share = newBucketShare(p, &c.seen, now, share)
	}
	free := w.share.available(now)
	for _, r := range p.rates {
		if r.Algorithm == counter.TokenBucket {
			continue
		}
		seen := c.seen.AvailableOf(r, now)
		own := seen - view.AvailableOf(r, now)
		free = min(free, seen/share-own)
	}
	return max(0, free)
}

// bucketShare is a node's part of a counter's token buckets. They refill by
// themselves, so a node's part must refill at its part of the rate: it is a
// bucket of its own, as full as the node's part was when the store went away.
type bucketShare struct {
	rates []counter.Rate
	state counter.Counter
}

func newBucketShare(p *plan, seen *counter.Counter, now counter.Instant, share int64) *bucketShare {
	b := &bucketShare{}
	for _, r := range p.rates {
		if r.Algorithm != counter.TokenBucket {
			continue
		}
		part := r
		part.Units, part.Burst = r.Units/share, r.Capacity()/share
		if part.Burst == 0 {
			part.Units = 0 // a burst of 0 would mean Units
		}
		b.rates = append(b.rates, part)
		one := []counter.Rate{part}
		b.state.Charge(one, part.Capacity()-seen.AvailableOf(r, now)/share, now, now)
	}
	return b
}

func (b *bucketShare) available(now counter.Instant) int64 { return b.state.Available(b.rates, now) }

func (b *bucketShare) charge(units int64, now counter.Instant) {
	b.state.Charge(b.rates, units, now, now)
}
