package sim

import (
	"slices"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// checkShare: what a node admits without the store, between two answers of it,
// is no more than its share of what the last one showed; of the limit, when
// there was none. With several tiers a decision does not tell which of them was
// decided without the store; and a counter that is not always kept is not
// always remembered.
func (w *world) checkShare(b *book, r rule, entries []entry) {
	if w.severalTiers(b) || !w.keepsAll() {
		return
	}
	others := func(p *ratelimit.Policy) bool { return p.OnStoreFailure != ratelimit.FailLocal }
	for i, e := range entries {
		if !e.degraded || others(e.policy) || slices.ContainsFunc(w.inForce(b.function, e.from.Add(-w.longestWait()), e.to), others) {
			continue
		}
		seen := w.remembered(b, e, e.to)
		own, most := w.share(b, r, entries[:i+1], seen)
		if own > most && !w.sharedBefore(b, r, entries[:i+1]) {
			w.fault("%s: %s admitted %d by itself until %v, its share of %v is %d",
				b.key, e.life.node.name, own, w.since(e.to), e.rate, most)
			return
		}
	}
}

// sharedBefore reports whether what the node of the last entry admitted by
// itself is within its share of an answer a while ago. What it granted itself
// before an answer came lives a little longer, and as long as the store keeps
// coming and going a node goes by what it saw before.
func (w *world) sharedBefore(b *book, r rule, entries []entry) bool {
	e := entries[len(entries)-1]
	before := e.to - 1
	for n := b.lastNews(e.life, before); n != nil; n = b.lastNews(e.life, before) {
		if own, most := w.share(b, r, entries, w.remembered(b, e, before)); own <= most {
			return true
		}
		before = n.got - 1
	}
	own, most := w.share(b, r, entries, w.remembered(b, e, before))
	return own <= most
}

// share is what the node of the last entry admitted by itself after its news,
// and the most that it may have, by the most generous of the policies meanwhile.
func (w *world) share(b *book, r rule, entries []entry, seen news) (own, most int64) {
	e := entries[len(entries)-1]
	rate, nodes := e.rate, int64(w.sc.nodes)
	from, windows := e.to.Add(-r.period), int64(1)
	switch opened := openedBy(seen.state, r, e.to); {
	case r.algorithm == counter.TokenBucket:
		from = seen.asked
	case opened > 0:
		from = opened - 1
	case r.algorithm == counter.Fixed:
		windows = 2 // a span touches two windows of the node's own
	}
	for j := len(entries) - 1; j >= 0 && entries[j].to > seen.asked; j-- {
		o := entries[j]
		if o.life == e.life && o.degraded && o.policy.OnStoreFailure == ratelimit.FailLocal && o.to > from {
			own += o.cost
			units, burst := w.limits(b, o, w.longestWait())
			rate.Units, rate.Burst = max(rate.Units, units), max(rate.Burst, burst)
		}
	}
	if r.algorithm != counter.TokenBucket {
		return own, windows * (seen.state.AvailableOf(rate, e.to.Add(w.sc.clockOff)) / nodes)
	}
	refill := float64(rate.Units) / float64(nodes) * float64(e.to.Sub(seen.at)+2*w.sc.clockOff+w.sc.config.LeaseLife) / float64(r.period)
	return own, seen.state.AvailableOf(rate, seen.at)/nodes + int64(refill) + 2
}

// openedBy is when a counter's fixed window that is open at an instant opened; 0
// when none is.
func openedBy(state counter.Counter, r rule, at counter.Instant) counter.Instant {
	for _, win := range state.Windows {
		if win.Algorithm == counter.Fixed && win.Period == r.period && r.algorithm == counter.Fixed && at < win.Opened.Add(win.Period) {
			return win.Opened
		}
	}
	return 0
}

// remembered is the newest answer that a node knew by an instant when it
// admitted: none when it had none, or was not asked for so long that it forgot
// the counter.
func (w *world) remembered(b *book, e entry, by counter.Instant) news {
	seen := news{at: w.ledger.begin, asked: w.ledger.begin}
	if n := b.lastNews(e.life, by); n != nil {
		seen = *n
	}
	last := w.ledger.begin
	for _, a := range b.asks {
		if a.life != e.life || a.at > e.to {
			continue
		}
		if a.at.Sub(last) >= w.sc.config.IdleAfter && a.at > seen.got {
			seen = news{at: a.at, asked: a.at - 1, got: a.at}
		}
		last = a.at
	}
	return seen
}
