package policy

import (
	"context"

	"github.com/headgate-io/headgate/ratelimit"
)

// Source is where policies come from. A source that is not an [Asking] lists:
// it tells its [Feed] its whole list when it first knows it and after each
// change; calls of one source never overlap.
type Source interface {
	// Name is the source's name in [Config.Order]: "file", "bucket", "nvcf".
	Name() string
	// Attach is called once, by [NewSet] and before the source is started.
	Attach(Feed)
}

// Asking is a source that is asked function by function.
type Asking interface {
	Source
	// Ask returns the policy for the function's version, nil when the source
	// has none. It waits no longer than the source's own timeout. degraded is
	// true when nil means that the source failed and never knew the function.
	Ask(ctx context.Context, function, version string) (p *ratelimit.Policy, degraded bool)
}

// Feed takes what a source has to tell. It is safe for concurrent use.
type Feed interface {
	// Replace puts the whole list in the place of the earlier one. The list
	// and its policies must not be changed afterwards.
	Replace(policies []*ratelimit.Policy)
	// Changed says that an earlier answer of an [Asking] may have changed.
	Changed()
	// Fault says that the source cannot be read, or part of it, and that the
	// last good policies stay. The source calls it once for each distinct
	// fault; it is logged and counted, so err must not name an account.
	Fault(err error)
	// Recovered says that every fault told before is gone.
	Recovered()
}

// Discard is a [Feed] for a source that belongs to no set.
var Discard Feed = discard{}

type discard struct{}

func (discard) Replace([]*ratelimit.Policy) {}
func (discard) Changed()                    {}
func (discard) Fault(error)                 {}
func (discard) Recovered()                  {}
