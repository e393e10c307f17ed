package ratelimit

import (
	"context"
	"strings"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// hold is a unit of one tier that an invocation has while the next tier is
// asked.
type hold struct {
	cell *cell
	v    verdict
}

// Decide decides one invocation. All its tiers must admit it, in the order
// subject, account, total; what an earlier tier gave goes back when a later one
// denies, so a denial charges nothing. A cost of 0 looks: it is answered as a
// cost of 1 would be, and charges nothing.
//
// A denial is a Decision, not an error, and so is a decision made while the
// store is away. Errors: a [*FieldError] (errors.Is [ErrInvalid]), [ErrStopped],
// and the context's.
func (l *Limiter) Decide(ctx context.Context, inv Invocation) (Decision, error) {
	if l.stopping.Load() {
		return Decision{}, ErrStopped
	}
	if inv.Function == "" {
		return Decision{}, &FieldError{Field: "function", Reason: "is required"}
	}
	if inv.Cost < 0 {
		return Decision{}, &FieldError{Field: "cost", Reason: "must not be negative"}
	}
	now := l.clock.Now()
	r := l.route(ctx, inv.Function, inv.Version, now)
	if r.compiled == nil {
		return Decision{Outcome: Admitted, Remaining: Unlimited, Degraded: r.degraded}, nil
	}
	plans, err := r.compiled.plans(&inv)
	if err != nil {
		return Decision{}, err
	}
	if inv.Cost == 0 {
		return l.lookAt(ctx, r, &plans, &inv)
	}
	for _, p := range &plans {
		if p != nil && inv.Cost > p.capacity {
			return impossible(p, inv.Cost), nil
		}
	}
	return l.decideTiers(ctx, r, &plans, &inv, now)
}

// decideTiers takes the cost from each tier in turn, all or nothing.
func (l *Limiter) decideTiers(ctx context.Context, r *route, plans *[Tiers]*plan, inv *Invocation, now counter.Instant) (Decision, error) {
	d := Decision{Outcome: Admitted, Remaining: Unlimited, Policy: r.compiled.policy}
	var holds [Tiers]hold
	for i, p := range plans {
		if p == nil {
			continue
		}
		c := l.cell(r.scope, p.tier, inv)
		v := c.take(l, p, now, inv.Cost)
		if v.outcome == mustWait {
			var err error
			if v, err = l.acquire(ctx, c, p, inv.Cost); err != nil {
				l.release(&holds, inv.Cost)
				return Decision{}, err
			}
			now = l.clock.Now()
		}
		d.Degraded = d.Degraded || v.degraded
		if v.outcome != taken {
			l.release(&holds, inv.Cost)
			return deny(d, p, v, now), nil
		}
		holds[i] = hold{c, v}
		if d.Remaining == Unlimited || v.remaining < d.Remaining {
			d.Remaining = v.remaining
		}
	}
	return d, nil
}

// release gives back what the tiers so far gave.
func (l *Limiter) release(holds *[Tiers]hold, cost int64) {
	for i := range holds {
		if holds[i].cell != nil {
			holds[i].cell.release(l, holds[i].v, cost)
		}
	}
}

func deny(d Decision, p *plan, v verdict, now counter.Instant) Decision {
	d.Outcome, d.Tier, d.Rate, d.Remaining = Denied, p.tier, v.rate, v.remaining
	d.RetryAfter = v.retry
	if d.RetryAfter == 0 && v.next > now {
		d.RetryAfter = v.next.Sub(now)
	}
	return d
}

func impossible(p *plan, cost int64) Decision {
	d := Decision{Outcome: Impossible, Tier: p.tier, Policy: p.policy}
	for _, r := range p.rates {
		if cost > r.Capacity() {
			d.Rate = r
			break
		}
	}
	return d
}

// cell finds the cell of one tier of an invocation.
func (l *Limiter) cell(s *scope, tier Tier, inv *Invocation) *cell {
	key := cellKey{scope: s, tier: tier}
	switch tier {
	case Subject:
		key.account, key.subject = inv.Account, inv.Subject
	case Account:
		key.account = inv.Account
	}
	if c, ok := l.cells.Load(key); ok {
		return c
	}
	return l.newCell(key)
}

// newCell makes a cell. When the node has too many already it is not kept, and
// its counter is settled at once instead of leased from.
func (l *Limiter) newCell(key cellKey) *cell {
	// A caller's strings may be part of something larger.
	key.account, key.subject = strings.Clone(key.account), strings.Clone(key.subject)
	c := &cell{key: key}
	if l.cells.Size() >= l.cfg.MaxCells {
		c.transient = true
		return c
	}
	kept, loaded := l.cells.LoadOrStore(key, c)
	if !loaded {
		c.used.Store(l.epoch.Load())
		l.roster.add(c)
	}
	return kept
}
