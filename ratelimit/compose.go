package ratelimit

import (
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

const (
	// maxBatch bounds the waiters that one exchange serves.
	maxBatch = 4096
	// maxLease is the longest that any lease lives.
	maxLease = time.Second
	// manyExchanges is how many exchanges a second a node may cost its store
	// before all its leases live longer, in proportion. Without it ten thousand
	// busy accounts would need a hundred thousand of them.
	manyExchanges = 2000
	// slowFactor makes a lease live as long as so many exchanges take, so that
	// where exchanges are slow, or keep conflicting, fewer are needed.
	slowFactor = 4
	// minSample is the shortest span a demand is measured over: less is noise.
	minSample = time.Millisecond
	// freshWeight is how much a new sample of demand weighs at least.
	freshWeight = 0.25
)

// flight is an exchange under way and those it decides.
type flight struct {
	x       Exchange
	plan    *plan
	batch   []*waiter
	started time.Time
	issued  counter.Instant // no later than the store can have got it
	// taken is what the exchange that a repeat asks about may have charged.
	taken int64
}

// repeat is the flight that asks what became of this one. Nobody waits for its
// units any more: if it was not applied, it is to charge none.
func (f *flight) repeat() *flight {
	x := f.x
	x.Needs, x.Want = nil, 0
	x.Issued = f.issued
	return &flight{x: x, plan: f.plan, issued: f.issued, taken: cost(f.x.Needs) + f.x.Want}
}

// compose takes from the cell what its next exchange carries; nil when there is
// nothing to say and nobody waits. The lock is held.
func (c *cell) compose(l *Limiter, now counter.Instant) *flight {
	p, w := c.plan.Load(), c.busy()
	mode := c.mode(p)
	if w.doubt != nil {
		w.doubt.started = time.Now()
		return w.doubt
	}
	if !w.due(mode) && !l.stopping.Load() {
		return nil
	}
	c.endSelfGrant(now)
	if ls := c.lease.Load(); ls != nil && !ls.live(now) {
		c.lease.Store(nil)
		c.retire(ls, now)
	}
	if w.held {
		return c.composeHeld(l, p)
	}
	f := &flight{plan: p, batch: w.takeBatch()}
	ahead := w.ahead || len(f.batch) > 0
	f.x = Exchange{Rates: p.rates, Returns: w.returns, Posts: w.posts, Needs: needs(f.batch)}
	if mode == Leased {
		rate := c.rate(p, f.x, now)
		f.x.Life = l.life(w, p)
		if ahead {
			f.x.Want = c.want(rate, f.x.Life)
		}
	}
	if len(f.batch) == 0 && !w.refresh && f.x.empty() {
		return nil
	}
	c.send(l, f)
	return f
}

// due reports whether there is a reason for an exchange now. What a delayed cell
// has to post waits for the next sync.
func (w *work) due(mode Consistency) bool {
	return w.doubt != nil || w.refresh || w.ahead || w.held || len(w.queue) > 0 || len(w.returns) > 0 ||
		(mode != Delayed && len(w.posts) > 0)
}

// composeHeld is compose for a counter that an operator holds: it hands back
// and posts, and grants nobody anything.
func (c *cell) composeHeld(l *Limiter, p *plan) *flight {
	w := c.work
	f := &flight{plan: p, x: Exchange{Rates: p.rates, Returns: w.returns, Posts: w.posts}}
	if f.x.empty() {
		return nil
	}
	c.send(l, f)
	return f
}

// send marks what the flight carries as travelling.
func (c *cell) send(l *Limiter, f *flight) {
	w := c.work
	f.x.Node, f.x.Serial = l.cfg.Node, l.serial.Add(1)
	f.issued = l.clock.Now().Add(-l.clock.Error())
	f.started = time.Now()
	l.pace.note(f.issued)
	w.flying, w.posts, w.returns = w.posts, nil, nil
	w.refresh, w.ahead = false, false
	w.asking = cost(f.x.Needs)
}

// empty reports whether the exchange would change nothing.
func (x Exchange) empty() bool {
	return len(x.Needs) == 0 && x.Want == 0 && len(x.Returns) == 0 && len(x.Posts) == 0 && !x.Reset && x.Add == 0
}

func (w *work) takeBatch() []*waiter {
	n := min(len(w.queue), maxBatch)
	batch := w.queue[:n:n]
	w.queue = w.queue[n:]
	return batch
}

// cost is what needs come to.
func cost(needs []Need) (units int64) {
	for _, n := range needs {
		units += n.Cost * n.Count
	}
	return units
}

// waited is what all who wait need, in the exchange under way and for the next.
func (w *work) waited() int64 {
	units := w.asking
	for _, wt := range w.queue {
		units += wt.cost
	}
	return units
}

// needs tells what the waiters need, in their order, runs of one cost together.
func needs(batch []*waiter) []Need {
	var list []Need
	for _, w := range batch {
		last := len(list) - 1
		switch {
		case w.cost == 0:
		case last >= 0 && list[last].Cost == w.cost:
			list[last].Count++
		default:
			list = append(list, Need{Cost: w.cost, Count: 1})
		}
	}
	return list
}

// life is how long the next lease of the cell is to live.
func (l *Limiter) life(w *work, p *plan) time.Duration {
	longest := maxLease
	if p.slice > 0 {
		longest = min(longest, p.slice)
	}
	stretched := p.life * time.Duration(max(1, l.pace.perSecond.Load()/manyExchanges))
	return max(p.life, min(longest, max(stretched, slowFactor*w.took)))
}

// rate is the cell's recent demand in units per second, with what the exchange
// is about to serve.
func (c *cell) rate(p *plan, x Exchange, now counter.Instant) float64 {
	d := &c.work.demand
	spent := d.spent + c.lease.Load().spent()
	return d.mark(spent+cost(x.Needs), now, p.life)
}

// want is how much to ask ahead: the demand over one lease life, less what is
// still there to be spent.
func (c *cell) want(rate float64, life time.Duration) int64 {
	ahead := int64(min(rate*life.Seconds(), float64(counter.MaxUnits)))
	return max(0, ahead-c.lease.Load().units()-c.work.next.units())
}

// mark notes what was spent until now and returns the demand in units per
// second.
func (d *demand) mark(spent int64, now counter.Instant, life time.Duration) float64 {
	span := max(now.Sub(d.at), minSample)
	fresh := float64(max(0, spent-d.marked)) / span.Seconds()
	weight := min(1, max(freshWeight, span.Seconds()/life.Seconds()))
	if d.at == 0 {
		fresh, weight = 0, 1
	}
	d.rate += weight * (fresh - d.rate)
	d.marked, d.at = spent, now
	return d.rate
}
