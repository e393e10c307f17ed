package ratelimit

import (
	"context"
	"strings"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// hold is a unit of one tier that an invocation has while the next tier is
// asked.
type hold struct {
	cell  *cell
	lease *lease
	at    counter.Instant
}

// Decide decides one invocation. All its tiers must admit it, in the order
// subject, account, total; what an earlier tier gave goes back when a later one
// denies, so a denial charges nothing. A cost of 0 looks: it is answered as a
// cost of 1 would be, and charges nothing.
//
// A denial is a Decision, not an error, and so is a decision made while the
// store is away. Errors: a [*FieldError] (errors.Is [ErrInvalid]), [ErrStopped],
// and the context's.
func (l *Limiter) Decide(ctx context.Context, inv Invocation) (d Decision, err error) {
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
	lu, err := r.compiled.lineup(&inv)
	if err != nil {
		return Decision{}, err
	}
	if inv.Cost == 0 {
		return l.lookAt(ctx, r, lu, &inv)
	}
	if inv.Cost > lu.capacity {
		return impossible(lu, inv.Cost), nil
	}
	d.Outcome, d.Remaining, d.Policy = Admitted, Unlimited, r.compiled.policy
	err = l.decideTiers(ctx, r.scope, lu, &inv, now, &d)
	return d, err
}

// decideTiers takes the cost from each tier in turn, all or nothing, and notes
// the outcome in d.
func (l *Limiter) decideTiers(ctx context.Context, s *scope, lu *lineup, inv *Invocation, now counter.Instant, d *Decision) error {
	var holds [Tiers]hold
	for i, p := range lu.plans {
		c := l.cell(s, p.tier, inv)
		var v verdict
		c.take(l, p, now, inv.Cost, &v)
		if v.outcome == mustWait {
			var err error
			if v, err = l.acquire(ctx, c, p, inv.Cost); err != nil {
				l.release(&holds, inv.Cost)
				*d = Decision{}
				return err
			}
			now = l.clock.Now()
		}
		d.Degraded = d.Degraded || v.degraded
		if v.outcome != taken {
			l.release(&holds, inv.Cost)
			deny(d, p, &v, now)
			return nil
		}
		holds[i] = hold{c, v.lease, v.at}
		if d.Remaining == Unlimited || v.remaining < d.Remaining {
			d.Remaining = v.remaining
		}
	}
	return nil
}

// release gives back what the tiers so far gave.
func (l *Limiter) release(holds *[Tiers]hold, cost int64) {
	for i := range holds {
		if holds[i].cell != nil {
			holds[i].cell.release(l, holds[i].lease, holds[i].at, cost)
		}
	}
}

// deny makes d the denial that a tier's verdict is.
func deny(d *Decision, p *plan, v *verdict, now counter.Instant) {
	d.Outcome, d.Tier, d.Remaining = Denied, p.tier, v.remaining
	if v.rate != nil {
		d.Rate = *v.rate
	}
	d.RetryAfter = v.retry
	if d.RetryAfter == 0 && v.at > now {
		d.RetryAfter = v.at.Sub(now)
	}
}

// impossible is the denial of a cost that some tier can never admit.
func impossible(lu *lineup, cost int64) Decision {
	for _, p := range lu.plans {
		for _, r := range p.rates {
			if cost > r.Capacity() {
				return Decision{Outcome: Impossible, Tier: p.tier, Rate: r, Policy: p.policy}
			}
		}
	}
	return Decision{Outcome: Impossible}
}

// cell finds the cell of one tier of an invocation, or makes it.
func (l *Limiter) cell(s *scope, tier Tier, inv *Invocation) *cell {
	if c := s.find(tier, inv); c != nil {
		return c
	}
	// The caller's strings may be part of something larger.
	c := &cell{scope: s, tier: tier}
	if tier != Total {
		c.account = strings.Clone(inv.Account)
	}
	if tier == Subject {
		c.subject = strings.Clone(inv.Subject)
	}
	// A node that has too many cells settles further counters at once instead
	// of leasing from them.
	if l.cells.Load() >= int64(l.cfg.MaxCells) {
		c.transient = true
		return c
	}
	c.used.Store(l.epoch.Load())
	if l.held.some.Load() {
		if key, ok := l.keyOf(c); ok && l.held.has(key) {
			c.busy().held = true
		}
	}
	kept, already := s.keep(c)
	if !already {
		l.cells.Add(1)
		l.roster.add(c)
	}
	return kept
}
