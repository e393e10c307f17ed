package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// cell is a node's local side of one counter. The fast path reads the three
// atomic pointers and takes from the lease; all else happens under the lock.
// The lock is never held while anything waits.
type cell struct {
	// What the fast path reads comes first, so that it is in one cache line.
	plan   atomic.Pointer[plan]
	lease  atomic.Pointer[lease]
	denial atomic.Pointer[denial]
	// used is the limiter's epoch in which the cell was last asked.
	used atomic.Uint32
	tier Tier
	// transient cells are not kept: the node has too many already.
	transient bool

	scope   *scope
	account string // empty in the total tier
	subject string // empty but in the subject tier

	mu   sync.Mutex
	work *work // nil while nothing is going on
	// seen is the counter as the store last showed it; known says whether it
	// ever did.
	seen   counter.Counter
	seenAt counter.Instant
	known  bool
	// failing says that the last exchange failed: what is known is no longer
	// in step with the other nodes.
	failing bool
	active  bool // on the limiter's list of cells to look after
}

// work is the part of a cell that only a busy one needs.
type work struct {
	queue      []*waiter       // invocations waiting for the next exchange
	queued     bool            // an exchange is under way or about to be
	refresh    bool            // read the counter even if there is nothing to say
	ahead      bool            // the lease runs low
	took       time.Duration   // how long the last exchange took
	returns    []Return        // charged units to hand back
	posts      []Post          // admitted units to charge
	flying     []Post          // posts that travel in the exchange under way
	undone     []Return        // what of those is to be undone once it is known whether they arrived
	doubt      *flight         // what to ask the store about, before anything else
	asking     int64           // units that the exchange under way needs
	postedFrom counter.Instant // the first admission that the last post stands for
	next       *lease          // the lease after the current one
	view       *counter.Counter
	outage     *outage
	demand     demand
	others     float64 // units that the other nodes take per sync interval, when they take most
	pace       float64 // units that they take per second, lately
	held       bool    // an operator holds the counter; nothing is granted
}

// demand estimates how fast a cell's units are spent.
type demand struct {
	spent  int64 // by retired leases and served waiters, ever
	marked int64 // spent at the last mark
	at     counter.Instant
	rate   float64 // units per second
	ticked int64   // spent at the last tick of the settlement loop
	quiet  int     // ticks in a row without anything spent
}

// verdict is what a cell says to one invocation.
type verdict struct {
	outcome   cellOutcome
	degraded  bool
	lease     *lease        // where a taken unit came from; nil: straight from an exchange
	rate      *counter.Rate // what denied; nil when no single rate did
	remaining int64
	// at is what a unit taken without a lease is charged to, or when a denied
	// one would be admitted (0: not known).
	at    counter.Instant
	retry time.Duration // instead of at, while degraded
}

type cellOutcome uint8

const (
	mustWait cellOutcome = iota // the fast path cannot tell
	taken
	refused
	failed // the store did not answer
)

// take is the fast path: it takes cost units from the live lease, or knows that
// they are not to be had, and says so in v; where it cannot tell it leaves v as it
// is. It neither locks nor allocates. (To return a verdict would be to copy it just
// after it was written, for which a processor waits.)
func (c *cell) take(l *Limiter, p *plan, now counter.Instant, cost int64, v *verdict) {
	if epoch := l.epoch.Load(); c.used.Load() != epoch {
		c.used.Store(epoch)
	}
	if c.plan.Load() != p {
		return
	}
	if ls := c.lease.Load(); ls.live(now) {
		if left, ok := ls.take(cost); ok {
			if left <= ls.low && !ls.asked.Load() && ls.asked.CompareAndSwap(false, true) {
				l.askAhead(c)
			}
			v.outcome, v.lease, v.remaining, v.degraded = taken, ls, left+ls.rest, ls.degraded
			return
		}
	}
	if d := c.denial.Load(); d.denies(now, cost) {
		if !d.asked.Load() && d.asked.CompareAndSwap(false, true) {
			l.askAgain(c)
		}
		d.tell(p, now, cost, v)
	}
}

// mode is how the cell keeps its counter. One that is not kept cannot hold what
// it leased or admitted: it is exact.
func (c *cell) mode(p *plan) Consistency {
	if c.transient {
		return Exact
	}
	return p.policy.Consistency
}

// busy returns the cell's work, which it makes when there is none. The lock is
// held.
func (c *cell) busy() *work {
	if c.work == nil {
		c.work = &work{}
	}
	return c.work
}

// adopt makes p the cell's plan, unless it has a newer one, and returns the one
// that it has then. What was leased under another plan goes back, and what was
// known of denials is forgotten. The lock is held.
func (c *cell) adopt(p *plan, now counter.Instant) *plan {
	cur := c.plan.Load()
	if cur != nil && cur.number >= p.number {
		return cur
	}
	if cur.decidesAs(p) { // another policy changed, or only what does not matter here
		c.plan.Store(p)
		return p
	}
	c.retireAll(now)
	c.denial.Store(nil)
	c.adoptAlone(p, now)
	if c.work != nil {
		c.work.view = nil
	}
	c.plan.Store(p)
	return p
}

// retireAll ends the current and the next lease. The lock is held.
func (c *cell) retireAll(now counter.Instant) {
	c.retire(c.lease.Swap(nil), now)
	if c.work != nil {
		c.retire(c.work.next, now)
		c.work.next = nil
	}
}

// retire ends a lease: charged units that nobody took are to be handed back,
// uncharged ones that were taken are to be posted. The lock is held.
func (c *cell) retire(ls *lease, now counter.Instant) {
	if ls == nil {
		return
	}
	w := c.busy()
	left := ls.close()
	w.demand.spent += ls.granted - left
	if ls.charged != 0 {
		w.giveBack(left, ls.charged)
		return
	}
	ls.charged = ls.dated
	c.post(ls.granted-left, ls.charged, now)
}

// endSelfGrant ends a lease that the node granted itself: what it knows is about
// to change, or to be posted. The lock is held.
func (c *cell) endSelfGrant(now counter.Instant) {
	if ls := c.lease.Load(); ls != nil && ls.charged == 0 {
		c.lease.Store(nil)
		c.retire(ls, now)
	}
}

// giveBack notes charged units to hand back.
func (w *work) giveBack(units int64, charged counter.Instant) {
	if units <= 0 {
		return
	}
	for i := range w.returns {
		if w.returns[i].Until == charged {
			w.returns[i].Units += units
			return
		}
	}
	w.returns = append(w.returns, Return{Units: units, Until: charged})
}

// release undoes a taken unit whose invocation another tier denied: back into
// the lease it is from, or else back to the counter.
func (c *cell) release(l *Limiter, from *lease, charged counter.Instant, cost int64) {
	if from != nil && from.putBack(cost) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w, p := c.busy(), c.plan.Load()
	if from != nil {
		charged = from.charged
	}
	if from == nil || from.dated != 0 { // or else it was charged from the first
		w.undo(p, cost, charged)
	} else {
		w.giveBack(cost, charged)
	}
	w.demand.spent -= cost
	w.view = nil
	if w.outage != nil {
		w.outage.released(p, cost, charged, l.clock.Now())
	}
	c.denial.Store(nil)
	l.look(c)
	l.enqueue(c)
}

// rotate puts the next lease in the place of one that is spent or over. The
// lock is held.
func (c *cell) rotate(now counter.Instant, cost int64) {
	cur := c.lease.Load()
	if cur.live(now) && cur.units() >= cost {
		return
	}
	if c.work == nil || c.work.next == nil {
		if cur != nil && (!cur.live(now) || cur.units() == 0) {
			c.lease.Store(nil)
			c.retire(cur, now)
		}
		return
	}
	next := c.work.next
	c.work.next = nil
	c.lease.Store(next)
	c.retire(cur, now)
}
