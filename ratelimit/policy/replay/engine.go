package replay

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Verdict is what a set of policies would have answered.
type Verdict struct {
	Outcome ratelimit.Outcome
	// Tier and Rate name what denied.
	Tier ratelimit.Tier
	Rate counter.Rate
	// RetryAfter is exact; zero unless Outcome is Denied.
	RetryAfter time.Duration
	// Policy decided; nil when none applies.
	Policy *ratelimit.Policy
	// Refused: the policy counts by an account and the record has none.
	Refused bool
}

// Allowed reports whether the invocation would have run.
func (v Verdict) Allowed() bool {
	return !v.Refused && (v.Outcome == ratelimit.Admitted || v.Policy != nil && v.Policy.Shadow)
}

// identity is what one counter belongs to.
type identity struct {
	function, version string
	tier              ratelimit.Tier
	account, subject  string
}

// engine decides by one set of policies.
type engine struct {
	finder   ratelimit.Finder
	counters map[identity]*tally
}

// tally is a counter and the rates it was last used with.
type tally struct {
	counter.Counter
	rates []counter.Rate
}

func newEngine(finder ratelimit.Finder) *engine {
	return &engine{finder, make(map[identity]*tally)}
}

// limit is one tier that applies to an invocation.
type limit struct {
	tier  ratelimit.Tier
	rates []counter.Rate
	tally *tally
}

// decide decides one invocation at an instant that is never before the last.
func (e *engine) decide(ctx context.Context, inv ratelimit.Invocation, now counter.Instant) Verdict {
	p, _ := e.finder.Find(ctx, inv.Function, inv.Version)
	if p == nil {
		return Verdict{Outcome: ratelimit.Admitted}
	}
	limits, ok := e.limits(p, inv)
	if !ok {
		return Verdict{Policy: p, Refused: true}
	}
	cost := max(inv.Cost, 1) // a look is answered as a cost of 1 would be
	for _, l := range limits {
		if rate, small := tooSmall(l.rates, cost); small {
			return Verdict{Outcome: ratelimit.Impossible, Tier: l.tier, Rate: rate, Policy: p}
		}
	}
	for _, l := range limits {
		if l.tally.Available(l.rates, now) >= cost {
			continue
		}
		i, next, _ := l.tally.Limiting(l.rates, now, cost)
		return Verdict{
			Outcome: ratelimit.Denied, Tier: l.tier, Rate: l.rates[max(0, i)], RetryAfter: next.Sub(now), Policy: p,
		}
	}
	for _, l := range limits {
		l.tally.Charge(l.rates, inv.Cost, now, now)
	}
	return Verdict{Outcome: ratelimit.Admitted, Policy: p}
}

// limits are the tiers that apply, in the order of decision; false when one of
// them counts by an account that is missing.
func (e *engine) limits(p *ratelimit.Policy, inv ratelimit.Invocation) ([]limit, bool) {
	version := inv.Version
	if p.Version == ratelimit.Any {
		version = ratelimit.Any
	}
	id := identity{function: inv.Function, version: version}
	var limits []limit
	add := func(tier ratelimit.Tier, rates []counter.Rate, account, subject string) {
		if len(rates) == 0 {
			return
		}
		id.tier, id.account, id.subject = tier, account, subject
		t := e.counters[id]
		if t == nil {
			t = &tally{}
			e.counters[id] = t
		}
		t.rates = rates
		limits = append(limits, limit{tier, rates, t})
	}
	account := accountRates(p, inv.Account)
	if inv.Account == "" && (len(account) > 0 || len(p.Subject) > 0 && inv.Subject != "") {
		return nil, false
	}
	if inv.Subject != "" {
		add(ratelimit.Subject, p.Subject, inv.Account, inv.Subject)
	}
	add(ratelimit.Account, account, inv.Account, "")
	add(ratelimit.Total, p.Total, "", "")
	return limits, true
}

func accountRates(p *ratelimit.Policy, account string) []counter.Rate {
	if rates, ok := p.Overrides[account]; ok {
		return rates
	}
	if _, ok := p.Exclude[account]; ok {
		return nil
	}
	return p.Account
}

// tooSmall is the first rate that can never admit the cost.
func tooSmall(rates []counter.Rate, cost int64) (counter.Rate, bool) {
	for _, r := range rates {
		if cost > r.Capacity() {
			return r, true
		}
	}
	return counter.Rate{}, false
}

// sweep forgets the counters in which nothing matters any more.
func (e *engine) sweep(now counter.Instant) {
	for id, t := range e.counters {
		if t.Expires(t.rates, now) == 0 {
			delete(e.counters, id)
		}
	}
}
