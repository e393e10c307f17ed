package ratelimit

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// lookAt answers an invocation of cost 0: as one of cost 1 would be answered,
// without charging anything.
func (l *Limiter) lookAt(ctx context.Context, r *route, lu *lineup, inv *Invocation) (Decision, error) {
	d := Decision{Outcome: Admitted, Remaining: Unlimited, Policy: r.compiled.policy}
	if lu.capacity == 0 {
		return impossible(lu, 1), nil
	}
	for _, p := range lu.plans {
		s, err := l.read(ctx, l.cell(r.scope, p.tier, inv), p)
		if err != nil {
			return Decision{}, err
		}
		d.Degraded = d.Degraded || s.degraded
		free := s.available()
		if free == 0 && d.Outcome == Admitted {
			rate, next, _ := s.state.Limiting(s.plan.rates, s.now, 1)
			deny(&d, s.plan, &verdict{rate: s.plan.rateAt(rate), at: next}, s.now)
			continue
		}
		if d.Remaining == Unlimited || free < d.Remaining {
			d.Remaining = free
		}
	}
	return d, nil
}

// stand is how a counter stands, as far as this node knows.
type stand struct {
	plan     *plan
	state    counter.Counter
	own      int64 // units that this node holds and that are charged already
	now      counter.Instant
	degraded bool
}

func (s stand) available() int64 { return s.state.Available(s.plan.rates, s.now) + s.own }

// read has the cell's counter read if what the cell knows is older than a sync
// interval, and tells how it stands.
func (l *Limiter) read(ctx context.Context, c *cell, p *plan) (stand, error) {
	degraded := false
	c.mu.Lock()
	now := l.clock.Now()
	p = c.adopt(p, now)
	if (!c.known || now.Sub(c.seenAt) >= l.cfg.SyncInterval) && !l.breaker.open() {
		w := &waiter{deadline: time.Now().Add(l.cfg.Attempt), done: make(chan verdict, 1)}
		work := c.busy()
		work.queue, work.refresh = append(work.queue, w), true
		l.enqueue(c)
		c.mu.Unlock()
		v, err := l.await(ctx, c, w)
		if err != nil {
			return stand{}, err
		}
		degraded = v.degraded
		c.mu.Lock()
	}
	s := l.standLocked(c, p)
	c.mu.Unlock()
	s.degraded = s.degraded || degraded
	return s, nil
}

// stand tells how a cell stands, as far as it knows.
func (l *Limiter) stand(c *cell, p *plan) stand {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.standLocked(c, c.adopt(p, l.clock.Now()))
}

func (l *Limiter) standLocked(c *cell, p *plan) stand {
	now := l.clock.Now()
	s := stand{plan: p, now: now, degraded: l.breaker.open(), state: c.viewAt(p, now).Clone()}
	for _, ls := range [...]*lease{c.lease.Load(), c.work.next} {
		if ls.live(now) {
			s.own += ls.units()
		}
	}
	l.look(c) // and when nothing else is going on, the cell comes to rest
	return s
}

// Standings tells how every rate that applies to the invocation stands, as far
// as this node knows, in the order of decision. It charges nothing and never
// asks the store; after a [Limiter.Decide] of the same invocation it tells what
// that decision rested on. It is nil where nothing limits.
func (l *Limiter) Standings(ctx context.Context, inv Invocation) []Standing {
	now := l.clock.Now()
	r := l.route(ctx, inv.Function, inv.Version, now)
	if r.compiled == nil {
		return nil
	}
	lu, err := r.compiled.lineup(&inv)
	if err != nil {
		return nil
	}
	var list []Standing
	for _, p := range lu.plans {
		s := l.stand(l.cell(r.scope, p.tier, &inv), p)
		for _, rate := range p.rates {
			list = append(list, Standing{
				Tier: p.tier, Rate: rate,
				Remaining: min(rate.Capacity(), s.state.AvailableOf(rate, s.now)+s.own),
				Reset:     max(0, s.state.FullAt(rate, s.now).Sub(s.now)),
			})
		}
	}
	return list
}
