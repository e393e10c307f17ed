package ratelimit

import (
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// nearLimit: a counter with less than this part of its capacity left is settled
// before the others, since what is handed back there is waited for.
const nearLimit = 10

// goneAfter is how many units that should have been spent and were not say that
// a cell has fallen idle, so that what it leased ahead goes back at once.
const goneAfter = 3

// standstill is for how long, beyond a sync interval, a node must not have run to
// lose its share of what it saw before.
const standstill = time.Second

// restAfter is how many ticks in a row a cell is not asked before it comes to
// rest and forgets what only a busy one needs.
const restAfter = 10

// settleLoop looks after the cells that owe something or are being asked, every
// sync interval, and forgets those that nobody uses.
func (l *Limiter) settleLoop() {
	ticker := time.NewTicker(l.cfg.SyncInterval)
	defer ticker.Stop()
	var sinceEpoch time.Duration
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-ticker.C:
		}
		if l.stopping.Load() {
			continue
		}
		l.tick()
		if sinceEpoch += l.cfg.SyncInterval; sinceEpoch >= l.cfg.IdleAfter/2 {
			sinceEpoch = 0
			l.epoch.Add(1)
		}
		l.evict()
	}
}

// tick visits the cells on the list and keeps those that still need it.
func (l *Limiter) tick() {
	l.watchStandstill()
	l.activeMu.Lock()
	cells := l.active
	l.active, l.visiting = nil, cells
	l.activeMu.Unlock()
	var kept []*cell
	for _, c := range cells {
		if l.visit(c) {
			kept = append(kept, c)
		}
	}
	l.activeMu.Lock()
	l.active, l.visiting = append(kept, l.active...), nil
	l.activeMu.Unlock()
}

// watchStandstill notes when the process did not run for a while: it was frozen,
// or starved.
func (l *Limiter) watchStandstill() {
	now := l.clock.Now()
	last := counter.Instant(l.ticked.Swap(int64(now)))
	if last != 0 && now.Sub(last) > standstill+l.cfg.SyncInterval {
		l.resumed.Store(int64(now))
	}
}

// visit ends leases that are over or that nobody uses, has what is owed settled
// and what is being denied read again. It reports whether the cell needs
// another visit.
func (l *Limiter) visit(c *cell) (again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := l.clock.Now()
	w, p := c.busy(), c.plan.Load()
	idle := w.demand.idle(c.lease.Load().spent())
	c.endLeases(now, idle && w.demand.over(l.cfg.SyncInterval))
	asked := false
	if d := c.denial.Load(); d != nil {
		if asked = d.asked.Swap(false); asked {
			w.demand.quiet = 0
		}
	}
	stale := now.Sub(c.seenAt) >= l.cfg.SyncInterval/2
	delayed := c.mode(p) == Delayed && w.demand.quiet < restAfter
	w.refresh = w.refresh || (asked && stale) || delayed || (c.mode(p) == Delayed && c.owed() > 0)
	if w.refresh || w.doubt != nil || c.owed() > 0 {
		l.enqueue(c)
	}
	if (w.demand.quiet < restAfter && !c.transient) || w.doubt != nil || w.queued || w.held || c.owed() > 0 || c.lease.Load() != nil || w.next != nil {
		return true
	}
	c.rest(p)
	return false
}

// rest lets an idle cell forget what only a busy one needs. The lock is held.
func (c *cell) rest(p *plan) {
	c.active, c.work = false, nil
	// A delayed decision rests on a state that is synced as long as the cell is
	// asked; after a rest it is read anew.
	c.known = c.known && c.mode(p) != Delayed
}

// endLeases ends the leases that are past their end, and with all also those
// that are not.
func (c *cell) endLeases(now counter.Instant, all bool) {
	w := c.work
	if ls := c.lease.Load(); ls != nil && (all || !ls.live(now)) {
		c.lease.Store(nil)
		c.retire(ls, now)
	}
	if w.next != nil && (all || !w.next.live(now)) {
		c.retire(w.next, now)
		w.next = nil
	}
}

// idle reports whether nothing was spent since the last tick, current being
// what was spent of the current lease.
func (d *demand) idle(current int64) bool {
	spent := d.spent + current
	idle := spent == d.ticked
	d.ticked = spent
	d.quiet++
	if !idle {
		d.quiet = 0
	}
	return idle
}

// over reports whether a cell that spent nothing lately has fallen idle: at the
// rate it was used, goneAfter units would have been spent meanwhile.
func (d *demand) over(tick time.Duration) bool {
	return float64(d.quiet)*tick.Seconds()*d.rate >= goneAfter
}

// look puts the cell on the list of those to look after; one that is not kept
// only while it owes something. The cell's lock is held.
func (l *Limiter) look(c *cell) {
	if c.active || (c.transient && c.owed() == 0 && (c.work == nil || c.work.doubt == nil)) {
		return
	}
	c.active = true
	l.activeMu.Lock()
	l.active = append(l.active, c)
	l.activeMu.Unlock()
}

// enqueue has the cell's exchange run, unless it is about to. The cell's lock
// is held.
func (l *Limiter) enqueue(c *cell) {
	w := c.busy()
	l.look(c)
	if w.queued || (l.breaker.open() && !l.stopping.Load()) {
		return
	}
	w.queued = true
	p := c.plan.Load()
	urgent := len(w.queue) > 0 || c.seen.Available(p.rates, c.seenAt) < p.capacity/nearLimit
	l.dispatch.push(c, urgent)
}

// askAhead is told by the fast path that a lease runs low.
func (l *Limiter) askAhead(c *cell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mode(c.plan.Load()) != Leased {
		return
	}
	c.busy().ahead = true
	l.enqueue(c)
}

// askAgain is told by the fast path that a denial is in use: the counter is to
// be read at least once per sync interval while that is so.
func (l *Limiter) askAgain(c *cell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.look(c)
	if l.clock.Now().Sub(c.seenAt) >= l.cfg.SyncInterval {
		c.busy().refresh = true
		l.enqueue(c)
	}
}

// probeLoop tries the store while it is away, with the exchange of a cell that
// failed.
func (l *Limiter) probeLoop() {
	ticker := time.NewTicker(l.cfg.ProbeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-ticker.C:
		}
		if c := l.failed.Load(); c != nil && l.breaker.open() {
			l.probe(c)
		}
	}
}

func (l *Limiter) probe(c *cell) {
	c.mu.Lock()
	w := c.busy()
	if w.queued {
		c.mu.Unlock()
		return
	}
	w.queued = true
	l.look(c)
	c.mu.Unlock()
	for again := l.exchangeOnce(c, true); again; {
		again = l.exchangeOnce(c, false)
	}
}

// settleAll ends all leases and has all that is owed settled. It reports
// whether something is still owed or under way.
func (l *Limiter) settleAll() bool {
	pending := false
	for _, c := range l.activeCells() {
		c.mu.Lock()
		c.retireAll(l.clock.Now())
		if c.owed() > 0 || c.busy().doubt != nil {
			l.enqueue(c)
		}
		pending = pending || c.owed() > 0 || c.busy().doubt != nil || c.busy().queued
		c.mu.Unlock()
	}
	return pending
}

// unsettled settles what there is and reports whether it is to be done again:
// something is owed, or an exchange is under way and may yet owe something, also
// one of a cell that is not kept.
func (l *Limiter) unsettled() bool {
	busy := l.dispatch.busy()
	return l.settleAll() || busy
}

func (l *Limiter) activeCells() []*cell {
	l.activeMu.Lock()
	defer l.activeMu.Unlock()
	return append(append([]*cell(nil), l.active...), l.visiting...)
}
