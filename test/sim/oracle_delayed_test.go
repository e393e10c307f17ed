package sim

import (
	"slices"
	"sort"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// lastNews is the newest answer of the store that a life had by an instant; nil
// when it had none.
func (b *book) lastNews(lf *life, by counter.Instant) *news {
	all := b.news[lf]
	n := sort.Search(len(all), func(i int) bool { return all[i].got > by })
	if n == 0 {
		return nil
	}
	return &all[n-1]
}

// checkDelayed: when a node admits, all that was admitted in the period before
// is no more than the limit and what the others admitted without the node being
// able to know.
//
// With several tiers a node also posts what it took for an invocation that a
// later tier then denied, so posts do not tell what was admitted, and a node
// that does not keep a cell for every counter posts each invocation apart; on a
// calm day either takes no longer than lag.
func (w *world) checkDelayed(b *book, r rule, entries []entry) {
	if !w.sc.calm && (w.severalTiers(b) || !w.keepsAll()) {
		return
	}
	switch r.algorithm {
	case counter.TokenBucket:
		w.checkBucket(b, r, withSeeing(entries), func(e entry, busy counter.Instant) int64 { return w.unseen(b, e, busy) })
	case counter.Sliding:
		w.checkDelayedSliding(b, r, entries)
	default:
		if w.sc.calm {
			w.checkDelayedFixed(b, r, entries)
		}
	}
}

// withSeeing leaves out what was admitted without the store.
func withSeeing(entries []entry) []entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.degraded })
}

func (w *world) checkDelayedSliding(b *book, r rule, entries []entry) {
	for i, last := range entries {
		if last.degraded {
			continue // see checkShare
		}
		// A node ages what it saw by its own clock.
		span := r.period - 2*w.sc.clockOff
		var sum int64
		for j := i; j >= 0 && last.to.Sub(entries[j].to) <= span; j-- {
			// What was admitted without the store while it was being asked crossed.
			crossed := entries[j].degraded && entries[j].to > last.from
			if !crossed && last.to.Sub(entries[j].from) <= span {
				sum += entries[j].cost
			}
		}
		limit, _ := w.limits(b, last, grace)
		if unseen := w.unseen(b, last, last.to.Add(-r.period)); sum > limit+unseen {
			w.fault("%s: delayed: %d admitted in the %v before %v, the limit is %d and %d could not be known",
				b.key, sum, r.period, w.since(last.to), limit, unseen)
			return
		}
	}
}

// unseen is how much of what others admitted from an instant until an admission
// its node could not know: it was not posted yet in the newest answer that the
// node had.
func (w *world) unseen(b *book, e entry, since counter.Instant) int64 {
	known := 0
	if n := b.lastNews(e.life, e.from-1); n != nil {
		known = n.order
	}
	var unseen int64
	for lf, sums := range b.sums() {
		if lf == e.life && w.keepsAll() {
			continue
		}
		seen := b.posted(lf, known)
		if w.severalTiers(b) || lf == e.life {
			seen = sumBefore(sums, e.from.Add(-w.lag()))
		}
		unseen += max(0, sumBefore(sums, e.to+1)-max(seen, sumBefore(sums, since)))
	}
	return unseen
}

// keepsAll reports whether every node has a cell for every counter. Where it has
// not, even its own invocations may not know of each other.
func (w *world) keepsAll() bool { return w.sc.config.MaxCells >= 1000 }

// lag is how long on a calm day one node's admission may be unknown to another:
// a sync interval until it is posted, one until it is read, and the exchanges.
func (w *world) lag() time.Duration { return 2*w.sc.config.SyncInterval + 2*w.sc.config.Attempt }

func (w *world) severalTiers(b *book) bool {
	return tiersOf(w.sc.functions[b.function].policies[0]) > 1
}

// sum is how much a life admitted until an instant, that included.
type sum struct {
	at    counter.Instant
	units int64
}

// sums are made once the book is complete.
func (b *book) sums() map[*life][]sum {
	if b.sumsOf == nil {
		b.sumsOf = make(map[*life][]sum)
		for _, a := range b.admitted {
			list := b.sumsOf[a.life]
			var before int64
			if len(list) > 0 {
				before = list[len(list)-1].units
			}
			b.sumsOf[a.life] = append(list, sum{a.to, before + a.cost})
		}
	}
	return b.sumsOf
}

// sumBefore is how much was admitted before an instant.
func sumBefore(sums []sum, at counter.Instant) int64 {
	n := sort.Search(len(sums), func(i int) bool { return sums[i].at >= at })
	if n == 0 {
		return 0
	}
	return sums[n-1].units
}

// posted is how much a life had posted when the store had applied so many
// exchanges. A post whose answer got lost does not count: it will be made again.
func (b *book) posted(lf *life, order int) int64 {
	var units int64
	for _, p := range b.posts {
		if p.life == lf && p.order <= order && p.answered {
			units += p.units
		}
	}
	return units
}

// checkDelayedFixed: in a window of the store there is no more than the limit
// and what the others admitted just before.
func (w *world) checkDelayedFixed(b *book, r rule, entries []entry) {
	for _, opened := range b.windows[r] {
		var sum int64
		for i, e := range entries {
			if e.from < opened.Add(2*w.sc.clockOff) || e.to >= opened.Add(r.period-2*w.sc.clockOff) {
				continue // by its own clock the node may see another window
			}
			sum += e.cost
			var others int64
			for j := i; j >= 0 && entries[j].to >= e.to.Add(-w.lag()); j-- {
				if entries[j].life != e.life {
					others += entries[j].cost
				}
			}
			if limit, _ := w.limits(b, e, grace); sum > limit+others {
				w.fault("%s: delayed: %d admitted until %v in the window of %v from %v, the limit is %d and the others admitted %d just before",
					b.key, sum, w.since(e.to), r.period, w.since(opened), limit, others)
				return
			}
		}
	}
}
