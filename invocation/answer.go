package invocation

import (
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// Answer is a decision as the JSON API tells it. Every field is always there.
type Answer struct {
	// Allowed says whether the invocation may run.
	Allowed bool `json:"allowed"`
	// Outcome is "admitted", "denied" or "impossible" (the cost is above a
	// limit's capacity, so waiting will not help). Under a policy that is not
	// enforced a denied invocation is allowed.
	Outcome string `json:"outcome"`
	// LimitedBy is what denied; null when nothing did.
	LimitedBy *LimitedBy `json:"limitedBy"`
	// Remaining is how many units the tightest tier would still admit; null
	// when nothing limits.
	Remaining *int64 `json:"remaining"`
	// RetryAfter is in seconds, exact; null unless denied.
	RetryAfter *float64 `json:"retryAfter"`
	// Limits is how each rate that applies stands, in the order of decision.
	Limits []Limit `json:"limits"`
	// Mode is the consistency of the policy, or "none" when no policy applies.
	Mode string `json:"mode"`
	// Degraded says that it was decided without the store, or without a source
	// of policies.
	Degraded bool `json:"degraded"`
	// PolicyRevision is the revision of the policy that decided, as its source
	// counts them; empty when no policy applies.
	PolicyRevision string `json:"policyRevision"`
}

// LimitedBy names the rate that denied, and its tier.
type LimitedBy struct {
	Tier string `json:"tier"`
	Rate string `json:"rate"`
}

// Limit is how one rate of one tier stands.
type Limit struct {
	Tier      string  `json:"tier"`
	Rate      string  `json:"rate"`
	Remaining int64   `json:"remaining"`
	Reset     float64 `json:"reset"` // seconds until all of it is available again
}

func answerOf(d ratelimit.Decision, standings []ratelimit.Standing) Answer {
	a := Answer{
		Allowed:  d.Allowed(),
		Outcome:  d.Outcome.String(),
		Limits:   make([]Limit, 0, len(standings)),
		Mode:     none,
		Degraded: d.Degraded,
	}
	if d.Policy != nil {
		a.Mode, a.PolicyRevision = d.Policy.Consistency.String(), d.Policy.Revision
	}
	if d.Outcome != ratelimit.Admitted {
		a.LimitedBy = &LimitedBy{Tier: d.Tier.String(), Rate: d.Rate.String()}
	}
	if d.Outcome == ratelimit.Denied {
		seconds := d.RetryAfter.Seconds()
		a.RetryAfter = &seconds
	}
	if d.Remaining != ratelimit.Unlimited {
		a.Remaining = &d.Remaining
	}
	for _, s := range standings {
		a.Limits = append(a.Limits, Limit{
			Tier: s.Tier.String(), Rate: s.Rate.String(), Remaining: s.Remaining, Reset: s.Reset.Seconds(),
		})
	}
	return a
}

// wholeSeconds is d in seconds, rounded up.
func wholeSeconds(d time.Duration) int64 {
	return int64((max(d, 0) + time.Second - 1) / time.Second)
}
