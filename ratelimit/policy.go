package ratelimit

import (
	"context"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Any is the function or version that stands for every one.
const Any = "*"

// Consistency is what a policy asks of its counters. The zero value is Leased.
type Consistency uint8

// The consistencies; see the package documentation for what each promises.
const (
	Leased Consistency = iota
	Exact
	Delayed
)

// String is the consistency as policies spell it.
func (c Consistency) String() string { return [...]string{"leased", "exact", "delayed"}[c] }

// Failure is what a policy wants while the store is away. The zero value is
// FailLocal.
type Failure uint8

// What to do while the store is away.
const (
	FailLocal Failure = iota // the node spends its share
	FailAllow
	FailDeny
)

// String is the failure mode as policies spell it.
func (f Failure) String() string { return [...]string{"local", "allow", "deny"}[f] }

// Policy is the limits of a function, or of one of its versions. A Policy is
// immutable once it is in force.
type Policy struct {
	Function string // required; Any is every function
	Version  string // required; Any is every version
	// Total limits the whole function; empty means no such tier.
	Total []counter.Rate
	// Account limits each account that Overrides does not name and Exclude
	// does not exempt; empty means no such tier for them.
	Account   []counter.Rate
	Overrides map[string][]counter.Rate // by account; replaces Account, never merges
	Exclude   map[string]struct{}       // accounts exempt from Account, not from Overrides
	// Subject limits each caller of each account; skipped without a subject.
	Subject []counter.Rate

	Consistency    Consistency
	OnStoreFailure Failure
	// Shadow decides, counts and reports, but admits ("enforce: false").
	Shadow bool

	Source   string // where it came from, for people: "file", "bucket", "nvcf"
	Revision string // the source's own revision of it
	Stale    bool   // its source cannot be asked now; this is the last good one
}

// Finder knows the policy in force for every function. It must be safe for
// concurrent use.
type Finder interface {
	// Find returns the most specific policy for the function: (function,
	// version), (function, Any), (Any, Any); nil means no limit. It may ask a
	// remote source and then waits no longer than that source's own timeout.
	// degraded is true when nil means "the source failed and never knew the
	// function" and not "there is no policy".
	Find(ctx context.Context, function, version string) (p *Policy, degraded bool)
	// Generation changes whenever an earlier answer of Find may have changed.
	// It is called on every decision and must cost one atomic load.
	Generation() uint64
}
