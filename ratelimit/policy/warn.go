package policy

import (
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// checkTiers warns of limits that can never bind.
func (d *decoder) checkTiers(s spot, at tierSpots, p *ratelimit.Policy) {
	if len(p.Total)+len(p.Account)+len(p.Overrides)+len(p.Subject) == 0 {
		d.warn(s, "has no tier: it limits nothing")
	}
	if len(p.Exclude) > 0 && len(p.Account) == 0 {
		d.warn(at.exclude, "exempts from account.rates, which are not given")
	}
	d.checkList(at.total, p.Total)
	d.checkList(at.account, p.Account)
	d.checkList(at.subject, p.Subject)
	d.checkAgainst(at.account, p.Account, p.Total, "total")
	for _, account := range sortedKeys(p.Overrides) {
		d.checkList(at.overrides[account], p.Overrides[account])
		d.checkAgainst(at.overrides[account], p.Overrides[account], p.Total, "total")
	}
	d.checkAgainst(at.subject, p.Subject, p.Total, "total")
	if len(p.Overrides) == 0 && len(p.Exclude) == 0 {
		d.checkAgainst(at.subject, p.Subject, p.Account, "account")
	}
}

// checkList warns of the rates of one tier that others of it make idle.
func (d *decoder) checkList(s spot, rates []counter.Rate) {
	for _, idle := range rates {
		for _, tight := range rates {
			if idle != tight && neverBinds(idle, tight) {
				d.warn(s, fmt.Sprintf("%s never binds: %s lets at most %d through in %s",
					idle, tight, most(tight, idle.Period), idle.Period))
				break
			}
		}
	}
}

// checkAgainst warns of rates above what a wider tier lets through.
func (d *decoder) checkAgainst(s spot, rates, wider []counter.Rate, tier string) {
	for _, idle := range rates {
		for _, tight := range wider {
			if neverBinds(idle, tight) {
				d.warn(s, fmt.Sprintf("%s never binds: %s.rates %s lets at most %d through in %s",
					idle, tier, tight, most(tight, idle.Period), idle.Period))
				break
			}
		}
	}
}

// neverBinds reports whether all that tight admits fits under idle. It says so
// only when it is sure: a token bucket's own burst makes no simple bound.
func neverBinds(idle, tight counter.Rate) bool {
	return idle.Algorithm != counter.TokenBucket && most(tight, idle.Period) < idle.Units
}

// most is the most units a rate admits in any span of that length, or
// math.MaxInt64 when that is more.
//
//	sliding        units × ceil(span/period)
//	fixed          units × (ceil(span/period) + 1), for windows need not align
//	token bucket   burst + units × ceil(span/period), rounded up
func most(r counter.Rate, span time.Duration) int64 {
	periods := uint64((span + r.Period - 1) / r.Period)
	extra := int64(0)
	switch r.Algorithm {
	case counter.Fixed:
		periods++
	case counter.TokenBucket:
		extra = r.Capacity()
	}
	high, low := bits.Mul64(uint64(r.Units), periods)
	if high != 0 || low > math.MaxInt64-uint64(extra) {
		return math.MaxInt64
	}
	return int64(low) + extra
}
