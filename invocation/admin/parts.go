package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Errors that implementations of this package's interfaces return.
// [ratelimit.ErrUnavailable] and [ratelimit.ErrUnknown] are understood too.
var (
	// ErrNotFound: there is no such policy or counter.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the policy is not at the revision that was expected; the
	// error may be a [*ConflictError].
	ErrConflict = errors.New("revision conflict")
	// ErrNoStore: there is nowhere to write policies to.
	ErrNoStore = errors.New("policies cannot be written here")
)

// ConflictError is [ErrConflict] with the revision that the policy is at.
type ConflictError struct {
	Current uint64 // 0 when there is no such policy
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("revision conflict: it is at %d", e.Current)
}

// Unwrap makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Unwrap() error { return ErrConflict }

// NodesError is a counter that was not reset because of some nodes, beside the
// error that says whether it may have been.
type NodesError struct {
	Silent  []string // they are there and did not answer
	Refused []string // they cannot settle what they owe now
}

func (e *NodesError) Error() string {
	var parts []string
	if len(e.Refused) > 0 {
		parts = append(parts, "cannot settle what they owe now: "+strings.Join(e.Refused, ", "))
	}
	if len(e.Silent) > 0 {
		parts = append(parts, fmt.Sprintf("%d did not answer: %s", len(e.Silent), strings.Join(e.Silent, ", ")))
	}
	return "nodes: " + strings.Join(parts, "; ")
}

// PolicyStore is where policies are written, for all nodes. It must be safe for
// concurrent use. A policy that it returns has its revision as a decimal number.
type PolicyStore interface {
	// Get reads the policy that is written for exactly this function and
	// version. Errors: [ErrNotFound], and policy.ErrPolicy when what is written
	// cannot be read.
	Get(ctx context.Context, function, version string) (*ratelimit.Policy, error)
	// Apply writes p, whatever is there, unless that says the same.
	Apply(ctx context.Context, p *ratelimit.Policy) (revision uint64, changed bool, err error)
	// Put writes p if what is there has the expected revision; 0 expects that
	// there is none. It returns the new revision. Error: [ErrConflict].
	Put(ctx context.Context, p *ratelimit.Policy, expected uint64) (uint64, error)
	// Delete removes what is there if it has the expected revision; 0 removes
	// whatever there is. Errors: [ErrNotFound], [ErrConflict].
	Delete(ctx context.Context, function, version string, expected uint64) error
}

// PolicyView is the policies as this node sees them; a policy.Set is one.
type PolicyView interface {
	ratelimit.Finder
	// Policies is what all listed sources hold, in the order of the sources.
	Policies() []*ratelimit.Policy
}

// StoredCounter is a counter as the store holds it.
type StoredCounter struct {
	Key   ratelimit.Key
	State counter.Counter
}

// CounterStore reads counters. It must be safe for concurrent use.
type CounterStore interface {
	// Get reads one counter. The error is [ErrNotFound] when it holds nothing.
	Get(ctx context.Context, key ratelimit.Key) (counter.Counter, error)
	// List reads the counters whose keys match the pattern, at most limit of
	// them, and says whether there are more. A pattern is a key in which "*"
	// stands for any one token.
	List(ctx context.Context, pattern string, limit int) (list []StoredCounter, more bool, err error)
}

// Lease is units of a counter that a node may admit on its own.
type Lease struct {
	Node  string
	Units int64
	Until time.Duration // from now
}

// Leases is which nodes hold leases on a counter, as far as nodes answer.
type Leases struct {
	Held   []Lease
	Silent []string // nodes that are there and do not answer
}

// Operator does to a counter what concerns every node. It must be safe for
// concurrent use. Rates are those that the counter counts for.
type Operator interface {
	// Reset revokes every node's leases on the counter and then forgets what
	// was spent; both are done when it returns. Of nodes that do not answer it
	// waits until their leases have ended. The error may hold a [*NodesError].
	Reset(ctx context.Context, key ratelimit.Key, rates []counter.Rate) error
	// Grant adds units in the current window.
	Grant(ctx context.Context, key ratelimit.Key, rates []counter.Rate, units int64) error
	// Leases asks every node what it holds of the counter.
	Leases(ctx context.Context, key ratelimit.Key) (Leases, error)
}

// Parts is what the API works on. All are required.
type Parts struct {
	Policies PolicyStore
	View     PolicyView
	Counters CounterStore
	Operator Operator
	Keys     *ratelimit.Keyring
	Clock    ratelimit.Clock
	// Status is how this node and the others are doing. What cannot be learned
	// now is left out; the error is for when nothing can.
	Status func(ctx context.Context) (Status, error)
}

// validate names every part that is missing.
func (p Parts) validate() error {
	var faults []error
	for _, part := range []struct {
		name    string
		missing bool
	}{
		{"Policies", p.Policies == nil}, {"View", p.View == nil}, {"Counters", p.Counters == nil},
		{"Operator", p.Operator == nil}, {"Keys", p.Keys == nil}, {"Clock", p.Clock == nil},
		{"Status", p.Status == nil},
	} {
		if part.missing {
			faults = append(faults, fmt.Errorf("admin: Parts.%s is missing", part.name))
		}
	}
	return errors.Join(faults...)
}
