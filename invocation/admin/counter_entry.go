package admin

import (
	"context"
	"errors"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// counterEntry is one counter as it stands.
type counterEntry struct {
	Key      string `json:"key"`
	Function string `json:"function"`
	Version  string `json:"version"` // of the policy; "*" counts all versions together
	Tier     string `json:"tier"`
	// Identity is the account, or the hash of a subject, or empty for the whole
	// function. Names too long for a key are hashes too, after a slash.
	Identity string `json:"identity"`
	// InForce is false when no policy counts with it any more: its limits are
	// then gone, and it expires by itself.
	InForce bool         `json:"inForce"`
	Limits  []limitEntry `json:"limits"`
}

// limitEntry is how one rate of a counter stands. Units that nodes hold as
// leases count as spent.
type limitEntry struct {
	Rate      string   `json:"rate"`
	Spent     int64    `json:"spent"` // negative after a grant that is not used up
	Remaining int64    `json:"remaining"`
	NextUnit  *float64 `json:"nextUnit"` // seconds until one is available; null: never
	FullIn    float64  `json:"fullIn"`   // seconds until all are available, if nobody spends
}

// read is a counter as it stands now; one that holds nothing has everything
// left.
func (h *handler) read(ctx context.Context, key ratelimit.Key) (counterEntry, error) {
	state, err := h.parts.Counters.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return counterEntry{}, err
	}
	entry, _, err := h.entry(ctx, key, state)
	return entry, err
}

// entry tells a counter's state under the policy in force, and the rates that
// it counts for: those of the policy, or else those that its state knows.
func (h *handler) entry(ctx context.Context, key ratelimit.Key, state counter.Counter) (counterEntry, []counter.Rate, error) {
	parts, err := ratelimit.ParseKey(key)
	if err != nil {
		return counterEntry{}, nil, invalid("key", "is not a counter's")
	}
	e := counterEntry{
		Key: string(key), Function: parts.Function, Version: parts.Version,
		Tier: parts.Tier.String(), Identity: parts.Identity, Limits: []limitEntry{},
	}
	rates := h.ratesInForce(ctx, parts)
	e.InForce = len(rates) > 0
	now := h.parts.Clock.Now()
	for _, rate := range rates {
		e.Limits = append(e.Limits, limitOf(state, rate, now))
	}
	if !e.InForce {
		rates = ratesOfState(state)
	}
	return e, rates, nil
}

// ratesInForce are the rates that the policy in force sets for a counter; none
// when it is no longer, or never was, a counter of a policy.
func (h *handler) ratesInForce(ctx context.Context, parts ratelimit.KeyParts) []counter.Rate {
	p, _ := h.parts.View.Find(ctx, parts.Function, parts.Version)
	if p == nil || p.Version != parts.Version {
		return nil
	}
	return ratesOf(p, parts.Tier, parts.Identity)
}

// ratesOf are the rates of one tier of a policy; those of the account tier
// depend on the account, which may stand as the hash that a key holds of it.
func ratesOf(p *ratelimit.Policy, tier ratelimit.Tier, account string) []counter.Rate {
	switch tier {
	case ratelimit.Subject:
		return p.Subject
	case ratelimit.Total:
		return p.Total
	case ratelimit.Account:
		for name, rates := range p.Overrides {
			if stands(account, name) {
				return rates
			}
		}
		for name := range p.Exclude {
			if stands(account, name) {
				return nil
			}
		}
		return p.Account
	default:
		return nil
	}
}

func stands(account, name string) bool {
	return account == name || account == ratelimit.EscapeToken(name)
}

// ratesOfState stands for the rates of a state when nobody knows its limits.
func ratesOfState(state counter.Counter) []counter.Rate {
	var rates []counter.Rate
	for _, win := range state.Windows {
		rates = append(rates, counter.Rate{Units: counter.MaxUnits, Period: win.Period, Algorithm: win.Algorithm})
	}
	return rates
}

func limitOf(state counter.Counter, rate counter.Rate, now counter.Instant) limitEntry {
	l := limitEntry{
		Rate: rate.String(), Spent: spent(state, rate, now), Remaining: state.AvailableOf(rate, now),
		FullIn: seconds(state.FullAt(rate, now).Sub(now)),
	}
	if next, ever := state.NextAt([]counter.Rate{rate}, now, 1); ever {
		in := seconds(next.Sub(now))
		l.NextUnit = &in
	}
	return l
}

// spent is how many units of a rate are in use. A rate of the largest limit
// sees the same state and never runs dry, so what it lacks is what was spent,
// even where the limit was lowered below that.
func spent(state counter.Counter, rate counter.Rate, now counter.Instant) int64 {
	if rate.Algorithm == counter.TokenBucket {
		rate.Burst = counter.MaxUnits
	} else {
		rate.Units = counter.MaxUnits
	}
	return counter.MaxUnits - state.AvailableOf(rate, now)
}

func seconds(d time.Duration) float64 { return max(0, d).Seconds() }
