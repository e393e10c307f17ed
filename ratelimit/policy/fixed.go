package policy

import (
	"context"

	"github.com/headgate-io/headgate/ratelimit"
)

// Fixed is a list of policies that never changes, as a [ratelimit.Finder]. Use
// [NewFixed].
type Fixed struct {
	listed   index
	fallback *ratelimit.Policy
}

var _ ratelimit.Finder = (*Fixed)(nil)

// NewFixed finds among the policies as a [Set] with one source does. The
// policies must not be changed afterwards.
func NewFixed(policies []*ratelimit.Policy) *Fixed {
	f := &Fixed{listed: newIndex([][]*ratelimit.Policy{policies})}
	for _, p := range policies {
		if p.Function == ratelimit.Any {
			f.fallback = p
		}
	}
	return f
}

// Find implements [ratelimit.Finder]. It never waits and is never degraded.
func (f *Fixed) Find(_ context.Context, function, version string) (*ratelimit.Policy, bool) {
	if p := f.listed.find(function, version); p != nil {
		return p, false
	}
	return f.fallback, false
}

// Generation implements [ratelimit.Finder].
func (f *Fixed) Generation() uint64 { return 0 }
