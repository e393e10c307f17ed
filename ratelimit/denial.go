package ratelimit

import (
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// denial is what a cell knows about not having units: no invocation of at least
// cost units is admitted before until. It is immutable but for asked.
type denial struct {
	cost      int64
	until     counter.Instant // first instant at which cost units are available
	rate      *counter.Rate   // the rate that denies them
	state     *counter.Counter
	remaining int64
	retry     time.Duration // when set, what to tell instead of the time until until
	degraded  bool
	// asked says that somebody was denied since the counter was last read. A
	// node that only denies must keep reading, and one that is not asked need
	// not.
	asked atomic.Bool
}

func (d *denial) denies(now counter.Instant, cost int64) bool {
	return d != nil && cost >= d.cost && now < d.until
}

// tell makes v the verdict on an invocation that is denied.
func (d *denial) tell(p *plan, now counter.Instant, cost int64, v *verdict) {
	v.outcome, v.rate, v.at, v.retry = refused, d.rate, d.until, d.retry
	v.remaining, v.degraded = d.remaining, d.degraded
	if cost > d.cost && d.state != nil {
		rate, next, _ := d.state.Limiting(p.rates, now, cost)
		v.rate, v.at = p.rateAt(rate), next
	}
}

func (d *denial) verdict(p *plan, now counter.Instant, cost int64) (v verdict) {
	d.tell(p, now, cost, &v)
	return v
}

// newDenial tells from a counter, which it copies, that cost units are not to be
// had; nil when they are.
func newDenial(state *counter.Counter, p *plan, now counter.Instant, cost int64) *denial {
	rate, next, ok := state.Limiting(p.rates, now, cost)
	if !ok || rate < 0 {
		return nil
	}
	own := state.Clone()
	return &denial{cost: cost, until: next, rate: p.rateAt(rate), state: &own, remaining: own.Available(p.rates, now)}
}
