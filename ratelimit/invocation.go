package ratelimit

// Invocation is one call of a function that somebody wants to make.
type Invocation struct {
	Account  string // who pays
	Function string
	Version  string
	Subject  string // the individual caller; empty when there is none. Personal data.
	Cost     int64  // units; 0 looks without charging
}

// Tier is one axis that a policy limits. The order is the order of decision.
type Tier uint8

// The tiers. NoTier is the zero value: nothing limited the invocation.
const (
	NoTier  Tier = iota
	Subject      // each caller
	Account      // each account
	Total        // the whole function
)

// Tiers is how many tiers a policy can have.
const Tiers = 3

// String is the tier's name as policies, metrics and answers spell it.
func (t Tier) String() string {
	switch t {
	case Subject:
		return "subject"
	case Account:
		return "account"
	case Total:
		return "total"
	default:
		return "none"
	}
}
