package ratelimit

import (
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Outcome says what became of an invocation. The zero Outcome is Denied, so a
// decision that somebody forgot to fill in never admits.
type Outcome uint8

// The outcomes.
const (
	Denied     Outcome = iota // ask again after Decision.RetryAfter
	Admitted                  // charged, or nothing limits it
	Impossible                // the cost is above a limit's capacity; waiting will not help
)

// String is the outcome as metrics and logs spell it.
func (o Outcome) String() string { return [...]string{"denied", "admitted", "impossible"}[o] }

// Unlimited is the Remaining of an invocation that no tier limits.
const Unlimited = int64(-1)

// Decision is the answer to one invocation. It is a value and owns nothing.
type Decision struct {
	// Outcome as decided by the counters. Under a policy that is not enforced
	// it may be Denied while Allowed returns true.
	Outcome Outcome
	// Tier and Rate name what denied; NoTier and the zero Rate when admitted.
	Tier Tier
	Rate counter.Rate
	// Remaining is how many units the tightest tier would still admit, as far
	// as this node knows; Unlimited when nothing limits.
	Remaining int64
	// RetryAfter is exact by the store's clock as long as nobody else spends
	// or returns; zero unless Outcome is Denied.
	RetryAfter time.Duration
	// Degraded: decided without the store, or without a policy source.
	Degraded bool
	// Policy is the one that decided; nil when there is none.
	Policy *Policy
}

// Allowed reports whether the invocation may run.
func (d Decision) Allowed() bool {
	return d.Outcome == Admitted || (d.Policy != nil && d.Policy.Shadow)
}

// Standing is how one rate of one tier stands for an invocation.
type Standing struct {
	Tier      Tier
	Rate      counter.Rate
	Remaining int64
	// Reset is the time until the rate's full capacity is available again if
	// nobody spends meanwhile.
	Reset time.Duration
}
