package sim

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// heal makes all well: from now on nothing fails.
func (w *world) heal() {
	w.healed.Store(true)
	w.mem.SetAway(storetest.Here)
	for _, n := range w.nodes {
		n.link.Store(int32(whole))
	}
}

// settleBound is how long after all is well something may still be owed: a
// probe, a sync interval, an attempt that was under way, and the exchanges.
func (w *world) settleBound() time.Duration {
	c := w.sc.config
	return c.ProbeInterval + 4*c.SyncInterval + 4*c.Attempt
}

// longestLease is the longest that any lease lives.
const longestLease = time.Second

// checkSettled waits until nobody owes anything, which must not take long, and
// no lease is left, which may take a lease's life; then it audits the store: at
// once for what must be there, and for what must not when all doubt is gone.
func (w *world) checkSettled() {
	const step = 5 * time.Millisecond
	begin := time.Now()
	idle := 3*w.sc.config.SyncInterval + w.sc.config.Attempt // to find out that nobody asks
	for time.Since(begin) < idle || w.leased() > 0 {
		time.Sleep(step)
		if waited := time.Since(begin); waited > idle+longestLease+w.settleBound() {
			w.fault("%d units are still leased %v after the last invocation", w.leased(), waited)
			break
		}
	}
	time.Sleep(w.sc.config.SyncInterval + step) // a lease that ended is noticed at the next tick
	begin = time.Now()
	for w.owed() > 0 {
		time.Sleep(step)
		if time.Since(begin) > w.settleBound() {
			w.fault("%d units are owed %v after all was well again", w.owed(), w.settleBound())
			break
		}
	}
	w.closed = w.sc.calm
	w.audit()
	if !w.closed {
		time.Sleep(w.settleBound()) // what was in doubt is asked about
		w.closed = true
		w.audit()
	}
}

// owed is what all living nodes have yet to settle.
func (w *world) owed() int64 {
	var units int64
	for _, n := range w.nodes {
		if lf := n.current(); lf != nil {
			units += lf.limiter.Unsettled()
		}
	}
	return units
}

// leased is what all living nodes have charged and may still spend.
func (w *world) leased() int64 {
	var units int64
	for _, n := range w.nodes {
		lf := n.current()
		if lf == nil {
			continue
		}
		for _, b := range w.ledger.pages() {
			held, _ := lf.limiter.Leased(b.key)
			units += held
		}
	}
	return units
}

// leaveAlone lets time pass until every counter must be fully available again,
// and asks a node that never saw them.
func (w *world) leaveAlone() {
	time.Sleep(w.sc.plan.MaxLate + w.sc.config.Attempt) // what is late arrives
	if w.sc.stopFirst {
		for _, n := range w.nodes {
			n.stop()
		}
	}
	full := w.truth.Now()
	for _, b := range w.ledger.pages() {
		state := w.mem.State(b.key)
		for _, r := range ratesOf(w.finder.current(w.sc.functions[b.function].name), b.tier, b.account) {
			at := state.FullAt(r, w.truth.Now())
			if bound := w.fullBound(b, r); at.Sub(w.truth.Now()) > bound {
				w.fault("%s: %v is full again after %v, the bound is %v", b.key, r, at.Sub(w.truth.Now()), bound)
			}
			full = max(full, at)
		}
	}
	if w.longPeriods() && !w.sc.stopFirst {
		return // ticking through a minute on every node is slow and shows no more
	}
	time.Sleep(full.Sub(w.truth.Now()) + 10*time.Millisecond)
	w.checkFull()
}

func (w *world) longPeriods() bool {
	for _, f := range w.sc.functions {
		for _, p := range f.policies {
			for _, tier := range tiers {
				for _, r := range ratesOf(p, tier, "") {
					if r.Period > 10*time.Second {
						return true
					}
				}
			}
		}
	}
	return false
}

// fullBound is how long a rate may take to be full: its period and a slice or
// two, or until a bucket has drained what was ever put into it.
func (w *world) fullBound(b *book, r counter.Rate) time.Duration {
	if r.Algorithm != counter.TokenBucket || r.Units == 0 {
		return r.Period + 3*r.Slice() + time.Second
	}
	return time.Duration(float64(r.Period)*float64(b.put+r.Capacity())/float64(r.Units)) + time.Second
}

// checkFull: every counter shows its whole capacity, and a new node admits.
func (w *world) checkFull() {
	for _, b := range w.ledger.pages() {
		state := w.mem.State(b.key)
		for _, r := range ratesOf(w.finder.current(w.sc.functions[b.function].name), b.tier, b.account) {
			if got := state.AvailableOf(r, w.truth.Now()); got != r.Capacity() {
				w.fault("%s: %v has %d available after it was left alone", b.key, r, got)
			}
		}
	}
	n := w.nodes[0]
	n.stop()
	n.start()
	for i := range w.sc.arrivals[:min(3, len(w.sc.arrivals))] {
		inv := w.sc.arrivals[i].inv
		inv.Cost, inv.Account = 1, "somebody new"
		d, err := n.current().limiter.Decide(context.Background(), inv)
		if err != nil {
			w.fault("a new node after all was left alone: %v", err)
			continue
		}
		if capacityFor(d.Policy, inv) > 3 && d.Outcome != ratelimit.Admitted {
			w.fault("a new node after all was left alone: %v by %v %v", d.Outcome, d.Tier, d.Rate)
		}
	}
}
