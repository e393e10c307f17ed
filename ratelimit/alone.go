package ratelimit

import (
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// outage is what a cell goes by while the store is away: the counter as it was
// last seen, of which the node has its share, and what it admitted since.
//
// It is kept for a while after the store is back. The other nodes have their
// debts yet to post then, and a node that took from the counter at once would
// take what they have spent.
type outage struct {
	seen    counter.Counter
	seenAt  counter.Instant
	view    counter.Counter // seen, with all that the node admitted since
	nodes   int64           // how many share it
	began   counter.Instant // when the node first decided by itself
	missed  int64           // what the others may have taken since it was seen, until then
	buckets []bucketShare
}

// decideAlone takes cost units from a lease that the node grants itself while
// the store is away: its share of what there was. The lock is held.
func (c *cell) decideAlone(l *Limiter, p *plan, now counter.Instant, cost int64) verdict {
	c.rotate(now, cost)
	if v := c.takeLocked(now, cost); v.outcome == taken {
		return v
	}
	c.retire(c.lease.Swap(nil), now)
	o := c.alone(l, p, now)
	var free int64
	if !l.stoodStill(o, now) && !l.contested(o, p, now) {
		free = o.available(p, now)
	}
	if free < cost {
		return c.refuseLocally(l, p, &o.view, now, cost, free, true)
	}
	c.lease.Store(c.selfGrant(&o.view, p, now, free, true))
	l.look(c)
	return c.takeLocked(now, cost)
}

// alone is the cell's outage, which begins with the first decision in it.
func (c *cell) alone(l *Limiter, p *plan, now counter.Instant) *outage {
	w := c.busy()
	if w.outage == nil {
		view := c.viewAt(p, now)
		nodes := l.share()
		w.outage = &outage{
			seen: c.seen.Clone(), seenAt: c.seenAt, view: view.Clone(), nodes: nodes,
			began: now, missed: w.missed(now.Sub(c.seenAt), l.cfg.SyncInterval),
		}
		w.outage.shareBuckets(p, now)
	}
	return w.outage
}

// available is how many units the node may still admit by itself, of its part of
// what the counter had. All nodes together then stay within the limit, since
// none counts on what the others have.
func (o *outage) available(p *plan, now counter.Instant) int64 {
	free := int64(counter.MaxUnits)
	for i := range o.buckets {
		free = min(free, o.buckets[i].available(now))
	}
	for _, r := range p.rates {
		if r.Algorithm == counter.TokenBucket {
			continue
		}
		seen := o.seen.AvailableOf(r, now)
		own := seen - o.view.AvailableOf(r, now)
		free = min(free, max(0, seen-o.missedOf(r, now))/o.nodes-own)
	}
	return max(0, free)
}

// missed is what the other nodes may have taken in a span that this node did not
// see, at the pace that it saw before; no more than it ever saw them take lately.
func (w *work) missed(span, sync time.Duration) int64 {
	return int64(w.pace * min(span, paceMemory*sync).Seconds())
}

// missedOf is what of that a window still counts.
func (o *outage) missedOf(r counter.Rate, now counter.Instant) int64 {
	if now.Sub(o.began) > r.Period+r.Slice() {
		return 0
	}
	return o.missed
}

// admitted notes what the node admitted by itself.
func (o *outage) admitted(p *plan, units int64, at, now counter.Instant) {
	o.view.Post(p.rates, units, at, now)
	for i := range o.buckets {
		o.buckets[i].charge(units, now)
	}
}

// released notes that units were given up again.
func (o *outage) released(p *plan, units int64, at, now counter.Instant) {
	o.view.Refund(p.rates, units, at, now)
	for i := range o.buckets {
		o.buckets[i].refund(units, now)
	}
}

// share is the number of nodes that share what there was when the store went
// away: those known when it last answered. A node that counted anew meanwhile
// would take what belongs to one that only fell silent.
func (l *Limiter) share() int64 {
	if n := l.fleet.Load(); n > 0 {
		return n
	}
	return int64(max(1, l.nodes()))
}

// stoodStill reports whether the node stood still since it last saw the counter:
// the others may have spent all of what it saw, so it has no share of that.
func (l *Limiter) stoodStill(o *outage, now counter.Instant) bool {
	ticked := counter.Instant(l.ticked.Load())
	return ticked != 0 && (now.Sub(ticked) > standstill || o.seenAt < counter.Instant(l.resumed.Load()))
}

// contested reports whether a node must leave the last units of a counter, those
// beyond half of a limit, to the others: the store failed it, but is not known to
// be away, and those whom it answers may be taking all that this node saw. A node
// that stood still comes back with all its callers at once.
func (l *Limiter) contested(o *outage, p *plan, now counter.Instant) bool {
	if l.breaker.open() || l.healing(now) || o.nodes == 1 {
		return false
	}
	return slices.ContainsFunc(p.rates, func(r counter.Rate) bool {
		return o.seen.AvailableOf(r, now) < r.Capacity()-r.Capacity()/2
	})
}

// healing reports whether the store came back so lately that other nodes may
// not have posted what they admitted without it.
func (l *Limiter) healing(now counter.Instant) bool {
	return now < counter.Instant(l.healed.Load())
}

// healingTime is how long it takes until every node has found the store and
// posted: its next probe, which may take two attempts, and its next tick.
func (c Config) healingTime() time.Duration {
	return c.ProbeInterval + 2*c.Attempt + c.SyncInterval
}

// adoptAlone makes the outage go by another plan than the cell's. What the node
// spent of its share it has spent, also where the limit is another one now; of a
// rate that is new it spent what is still to be posted, as the store will have it.
func (c *cell) adoptAlone(p *plan, now counter.Instant) {
	w, before := c.work, c.plan.Load()
	if w == nil || w.outage == nil {
		return
	}
	for _, r := range p.rates {
		if slices.ContainsFunc(before.rates, func(o counter.Rate) bool { return o.Period == r.Period && o.Algorithm == r.Algorithm }) {
			continue
		}
		for _, post := range slices.Concat(w.flying, w.posts) {
			w.outage.view.Post([]counter.Rate{r}, post.Units, post.At, now)
		}
	}
	w.outage.shareBuckets(p, now)
}

// shareBuckets makes a part of each of a plan's token buckets, or keeps the one
// that there is.
func (o *outage) shareBuckets(p *plan, now counter.Instant) {
	var buckets []bucketShare
	for _, r := range p.rates {
		if r.Algorithm == counter.TokenBucket {
			buckets = append(buckets, o.bucketShare(r, now))
		}
	}
	o.buckets = buckets
}

// bucketShare is a node's part of one of a counter's token buckets. A bucket
// refills by itself, so the node's part must refill at its part of the rate: it
// is a bucket of its own, as full as the node's part was when the store went away.
type bucketShare struct {
	part  counter.Rate
	state counter.Counter
}

func (o *outage) bucketShare(r counter.Rate, now counter.Instant) bucketShare {
	b := bucketShare{part: r}
	b.part.Units, b.part.Burst = r.Units/o.nodes, r.Capacity()/o.nodes
	if b.part.Burst == 0 {
		b.part.Units = 0 // a burst of 0 would mean Units
	}
	for _, before := range o.buckets {
		if before.part.Period == r.Period {
			b.state = before.state
			return b
		}
	}
	free := o.seen.AvailableOf(r, now)
	own := free - o.view.AvailableOf(r, now)
	b.charge(b.part.Capacity()-max(0, free-o.missed)/o.nodes+own, now)
	return b
}

func (b *bucketShare) available(now counter.Instant) int64 { return b.state.AvailableOf(b.part, now) }

func (b *bucketShare) charge(units int64, now counter.Instant) {
	b.state.Charge([]counter.Rate{b.part}, units, now, now)
}

func (b *bucketShare) refund(units int64, now counter.Instant) {
	b.state.Refund([]counter.Rate{b.part}, units, now, now)
}
