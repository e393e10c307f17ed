package ratelimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// retryPause is about how long to wait before an exchange that the store
// refused is tried again for those who still have time.
const retryPause = 5 * time.Millisecond

// exchangeOnce runs one exchange of the cell and reports whether there is more
// to do. The cell's work.queued is true; it is false once exchangeOnce reported
// false.
func (l *Limiter) exchangeOnce(c *cell, probe bool) (again bool) {
	c.mu.Lock()
	if l.ctx.Err() != nil || (l.breaker.open() && !probe && !l.stopping.Load()) {
		c.work.failAll()
		c.work.queued = false
		c.mu.Unlock()
		return false
	}
	if probe {
		c.work.refresh = true
	}
	f := c.compose(l, l.clock.Now())
	if f == nil {
		c.work.queued = false
		c.mu.Unlock()
		return false
	}
	c.mu.Unlock()

	g, err := l.call(c, f)

	c.mu.Lock()
	if err != nil {
		again = l.fail(c, f, err)
	} else {
		l.apply(c, f, g)
		again = true
	}
	c.work.queued = again
	c.mu.Unlock()
	if err != nil && again {
		l.pause(retryPause/2 + rand.N(retryPause))
	}
	return again
}

// call carries the flight's exchange to the store.
func (l *Limiter) call(c *cell, f *flight) (Grant, error) {
	key, ok := l.keyOf(c)
	if !ok {
		return Grant{}, ErrUnavailable
	}
	f.x.Key = key
	ctx, cancel := context.WithTimeout(l.ctx, l.cfg.Attempt)
	defer cancel()
	return l.store.Exchange(ctx, f.x)
}

func (l *Limiter) pause(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.ctx.Done():
	}
}

// apply is what a cell makes of a grant: whoever waited is served in order, the
// rest becomes a lease. The lock is held.
func (l *Limiter) apply(c *cell, f *flight, g Grant) {
	if l.breaker.success() {
		l.storeBack()
	}
	w := c.work
	now := max(l.clock.Now(), g.At)
	w.took = time.Since(f.started)
	l.fleet.Store(int64(max(1, l.nodes())))
	l.metrics.settled(f.x, g)
	c.watchOthers(f.plan, f.x, g, l.cfg.SyncInterval)
	c.endSelfGrant(now)
	w.flying, w.doubt, w.view, w.asking = nil, nil, nil, 0
	w.settleUndone(f.plan)
	if !l.healing(now) {
		w.outage = nil
	}
	c.seen, c.seenAt, c.known, c.failing = g.State, g.At, true, false
	c.denial.Store(nil)
	left, denied := w.serve(f, g, c.seen.Available(f.plan.rates, now), &c.seen, now)
	c.keep(l, f, g, left, now)
	l.look(c)
	if len(w.returns) == 0 && c.plan.Load() == f.plan {
		state := &c.seen
		if len(w.posts) > 0 {
			state = c.viewAt(f.plan, now)
		}
		d := newDenial(state, f.plan, now, denied)
		if d != nil {
			d.asked.Store(len(f.batch)+len(w.queue) > 0)
		}
		c.denial.Store(d)
	}
	l.serveQueued(c, now)
}

// serveQueued decides for those who came while the exchange was under way what
// can be decided without another one, as for those who come now. After an outage
// the store decides for them, and not this node's share. The lock is held.
func (l *Limiter) serveQueued(c *cell, now counter.Instant) {
	w, p := c.work, c.plan.Load()
	if w.outage != nil {
		return
	}
	w.queue = slices.DeleteFunc(w.queue, func(wt *waiter) bool {
		v, ok := l.decideLocked(c, p, now, wt.cost)
		if ok {
			wt.done <- v
		}
		return ok
	})
}

// serve gives the granted units to the waiters in their order. It returns what
// is left of them, and the smallest cost that was denied, or 1. Whoever was
// passed over and would be admitted by now, since time went on, waits again, but
// once only: the store's clock may be a little behind.
func (w *work) serve(f *flight, g Grant, remaining int64, state *counter.Counter, now counter.Instant) (left, denied int64) {
	left, denied = g.Units, 1
	smallest := counter.MaxUnits + 1
	var again []*waiter
	for _, wt := range f.batch {
		if wt.cost <= left {
			if !wt.gone { // or else its units stay with the rest
				left -= wt.cost
				w.demand.spent += wt.cost
				wt.done <- verdict{outcome: taken, at: g.Until, remaining: remaining}
			}
			continue
		}
		rate, next, _ := state.Limiting(f.plan.rates, now, wt.cost)
		switch {
		case wt.gone:
		case rate < 0 && !wt.again:
			wt.again = true
			again = append(again, wt)
		case rate < 0:
			wt.done <- verdict{outcome: refused, rate: f.plan.rateAt(0), retry: retryPause, remaining: remaining}
		default:
			smallest = min(smallest, wt.cost)
			wt.done <- verdict{outcome: refused, rate: f.plan.rateAt(rate), at: next, remaining: remaining}
		}
	}
	w.queue = append(again, w.queue...)
	if smallest <= counter.MaxUnits && remaining > 0 {
		denied = smallest
	}
	return left, denied
}

// keep makes a lease of granted units that nobody waited for, or hands them
// back where there can be none. The lock is held.
func (c *cell) keep(l *Limiter, f *flight, g Grant, units int64, now counter.Instant) {
	if units <= 0 {
		return
	}
	w := c.work
	until := g.Until.Add(-l.clock.Error())
	leased := c.mode(f.plan) == Leased && c.plan.Load() == f.plan
	if !leased || w.held || l.stopping.Load() || until <= now {
		w.giveBack(units, g.Until)
		return
	}
	ls := newLease(units, until, g.Until)
	ls.low = lowMark(units, until.Sub(now), w.took)
	ls.rest = c.seen.Available(f.plan.rates, now)
	if cur := c.lease.Load(); cur.live(now) && cur.units() > 0 {
		c.retire(w.next, now)
		w.next = ls
		return
	}
	old := c.lease.Swap(ls)
	c.retire(old, now)
}

// fail is what a cell makes of an exchange that failed. What was refused is
// tried again. Where it may have been applied, the store is asked until it can
// tell; where it never can, every doubt falls on the side of admitting less: a
// lease counts as not granted, a return as made, a post as not made. It reports
// whether there is something to do at once. The lock is held.
func (l *Limiter) fail(c *cell, f *flight, err error) (again bool) {
	w := c.work
	refused := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrNewerFormat)
	switch {
	case errors.Is(err, ErrForgotten):
		w.doubt = nil
		w.unpack(f.plan, nil)
	case w.doubt == f: // still in doubt
	case refused:
		w.unpack(f.plan, f.x.Returns)
	case f.x.empty():
	default:
		w.doubt = f.repeat()
	}
	w.view, w.asking = nil, 0
	c.failing = true
	l.metrics.failures.Inc()
	l.failed.Store(c)
	l.look(c)
	if l.breaker.failure(time.Now()) {
		l.storeAway(err)
	}
	if !refused || l.breaker.open() {
		fail(f.batch)
	} else {
		w.queue = append(stillInTime(f.batch), w.queue...)
	}
	return (w.doubt != nil || len(w.queue) > 0) && (!l.breaker.open() || l.stopping.Load())
}

// unpack takes back what an exchange carried that was not applied.
func (w *work) unpack(p *plan, returns []Return) {
	for _, r := range returns {
		w.giveBack(r.Units, r.Until)
	}
	w.posts = slices.Concat(w.flying, w.posts) // what travelled is never changed
	w.flying = nil
	w.settleUndone(p)
}

// stillInTime are those who have time for another try; the others are told.
func stillInTime(batch []*waiter) []*waiter {
	retry := batch[:0]
	for _, wt := range batch {
		if !wt.gone && time.Now().Add(2*retryPause).Before(wt.deadline) {
			retry = append(retry, wt)
			continue
		}
		fail([]*waiter{wt})
	}
	return retry
}

func (w *work) failAll() {
	fail(w.queue)
	w.queue = nil
}

func fail(batch []*waiter) {
	for _, wt := range batch {
		if !wt.gone {
			wt.done <- verdict{outcome: failed}
		}
	}
}
