package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// finder holds the policy in force of each function.
type finder struct {
	policies   atomic.Pointer[map[string]*ratelimit.Policy]
	generation atomic.Uint64
}

func (f *finder) set(p *ratelimit.Policy) {
	next := make(map[string]*ratelimit.Policy)
	if old := f.policies.Load(); old != nil {
		next = maps.Clone(*old)
	}
	next[p.Function] = p
	f.policies.Store(&next)
	f.generation.Add(1)
}

// current is the policy of a function in force now.
func (f *finder) current(function string) *ratelimit.Policy { return (*f.policies.Load())[function] }

// Find implements [ratelimit.Finder].
func (f *finder) Find(_ context.Context, function, _ string) (*ratelimit.Policy, bool) {
	return (*f.policies.Load())[function], false
}

// Generation implements [ratelimit.Finder].
func (f *finder) Generation() uint64 { return f.generation.Load() }

// newFunction has a policy that binds for about the load it gets, and up to two
// later ones.
func newFunction(rng *rand.Rand, i int, span time.Duration, arrivals int) function {
	f := function{name: fmt.Sprintf("function-%d", i), accounts: 1 + rng.IntN(3)}
	if rng.IntN(2) == 0 {
		f.subjects = 1 + rng.IntN(3)
	}
	first := &ratelimit.Policy{
		Function: f.name, Version: ratelimit.Any, Revision: "0",
		Consistency:    pick(rng, ratelimit.Leased, ratelimit.Leased, ratelimit.Exact, ratelimit.Delayed),
		OnStoreFailure: pick(rng, ratelimit.FailLocal, ratelimit.FailLocal, ratelimit.FailAllow, ratelimit.FailDeny),
	}
	perSecond := float64(arrivals) / span.Seconds()
	if rng.IntN(5) > 0 {
		first.Account = newRates(rng, perSecond/float64(f.accounts), span)
	}
	if f.subjects > 0 && rng.IntN(2) == 0 {
		first.Subject = newRates(rng, perSecond/float64(f.accounts*f.subjects), span)
	}
	if rng.IntN(3) == 0 || len(first.Account)+len(first.Subject) == 0 {
		first.Total = newRates(rng, perSecond, span)
	}
	f.policies = []*ratelimit.Policy{first}
	for n := rng.IntN(3); n > 0; n-- {
		f.policies = append(f.policies, changed(rng, f.policies[len(f.policies)-1], len(f.policies)))
	}
	return f
}

// newRates are one or two rates that a load of perSecond meets half or several
// times over.
func newRates(rng *rand.Rand, perSecond float64, span time.Duration) []counter.Rate {
	var rates []counter.Rate
	for range 1 + rng.IntN(2) {
		period := millis(rng, 1000, 1000, 2000, 3000, 5000, 10000, 60000)
		load := perSecond * min(period, span).Seconds()
		r := counter.Rate{
			Units:     max(1, int64(load/pick(rng, 0.5, 1, 2, 2, 5))),
			Period:    period,
			Algorithm: pick(rng, counter.Sliding, counter.Sliding, counter.Fixed, counter.TokenBucket),
		}
		if r.Algorithm == counter.TokenBucket && rng.IntN(2) == 0 {
			r.Burst = 1 + rng.Int64N(r.Units)
		}
		rates = append(rates, r)
	}
	return counter.Normalize(rates)
}

// changed is a later edition of a policy, different in one thing.
func changed(rng *rand.Rand, old *ratelimit.Policy, revision int) *ratelimit.Policy {
	p := *old
	p.Revision = fmt.Sprint(revision)
	p.Subject, p.Account, p.Total = slices.Clone(p.Subject), slices.Clone(p.Account), slices.Clone(p.Total)
	switch rng.IntN(6) {
	case 0:
		p.OnStoreFailure = pick(rng, ratelimit.FailLocal, ratelimit.FailAllow, ratelimit.FailDeny)
	case 1:
		if p.Consistency != ratelimit.Delayed {
			p.Consistency = pick(rng, ratelimit.Leased, ratelimit.Exact)
		}
	case 2:
		if len(p.Account) > 0 {
			own := slices.Clone(p.Account)
			scale(rng, own)
			p.Overrides = map[string][]counter.Rate{"account-0": own}
		}
	case 3:
		if len(p.Account) > 0 && len(p.Total) > 0 {
			p.Exclude = map[string]struct{}{"account-1": {}}
		}
	default:
		scale(rng, p.Subject)
		scale(rng, p.Account)
		scale(rng, p.Total)
	}
	return &p
}

// scale raises or lowers rates, and now and then denies all.
func scale(rng *rand.Rand, rates []counter.Rate) {
	for i := range rates {
		r := &rates[i]
		r.Units = max(1, int64(float64(r.Units)*pick(rng, 0.3, 0.5, 2, 3)))
		if r.Burst > 0 {
			r.Burst = max(1, min(r.Burst, r.Units))
		}
		if rng.IntN(20) == 0 {
			r.Units, r.Burst = 0, 0
		}
	}
}

// ratesOf are the rates of one tier of a policy for an account.
func ratesOf(p *ratelimit.Policy, tier ratelimit.Tier, account string) []counter.Rate {
	switch tier {
	case ratelimit.Subject:
		return p.Subject
	case ratelimit.Total:
		return p.Total
	}
	if own, ok := p.Overrides[account]; ok {
		return own
	}
	if _, ok := p.Exclude[account]; ok {
		return nil
	}
	return p.Account
}

// tiersOf counts the tiers that a policy could apply.
func tiersOf(p *ratelimit.Policy) int {
	n := 0
	for _, tier := range [...]ratelimit.Tier{ratelimit.Subject, ratelimit.Account, ratelimit.Total} {
		if len(ratesOf(p, tier, "")) > 0 {
			n++
		}
	}
	return n
}
