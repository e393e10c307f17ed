package kvstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// Policies is the bucket of policies as a [policy.Source], and the way to
// change it. A change is in force on every node that watches as soon as the
// store has told it, within milliseconds.
//
// Keys are "<function>.<version>", escaped as those of counters; values are
// policy documents in JSON, so that people can read and write them with any
// client of NATS. A value that does not parse keeps the last good policy of its
// key and is told once. Use [NewPolicies]. All methods may be called
// concurrently.
type Policies struct {
	store joinable
	feed  policy.Feed
	check time.Duration // how often the watch is compared with the bucket

	mu      sync.Mutex // guards stop and stopped
	stop    context.CancelFunc
	stopped chan struct{}

	view policyView // belongs to the watching goroutine
}

// joinable is what Policies needs of a [Store].
type joinable interface {
	Joined() <-chan struct{}
	JetStream() jetstream.JetStream
}

var _ policy.Source = (*Policies)(nil)

// policiesCheck is how often a watch makes sure that it missed nothing.
const policiesCheck = time.Second

// NewPolicies makes a source over the bucket of store. It does no I/O.
func NewPolicies(store *Store) *Policies { return newPolicies(store) }

func newPolicies(store joinable) *Policies {
	return &Policies{store: store, feed: policy.Discard, check: policiesCheck}
}

// Name implements [policy.Source].
func (p *Policies) Name() string { return policy.Bucket }

// Attach implements [policy.Source].
func (p *Policies) Attach(feed policy.Feed) { p.feed = feed }

// Start begins to watch as soon as the store is joined, and returns at once.
// The error is [ErrStarted].
func (p *Policies) Start(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		return ErrStarted
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.stop, p.stopped = cancel, make(chan struct{})
	go func() {
		defer close(p.stopped)
		p.run(ctx)
	}()
	return nil
}

// Stop ends the watching and waits for it, at most until ctx ends. The last
// policies stay in force. It may be called again, and before Start.
func (p *Policies) Stop(ctx context.Context) error {
	p.mu.Lock()
	stop, stopped := p.stop, p.stopped
	p.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kvstore: stop watching policies: %w", ctx.Err())
	}
}

// Errors of changing policies, beside [ratelimit.ErrUnavailable] (nothing was
// changed), [ratelimit.ErrUnknown] (it may have been) and [policy.ErrPolicy].
var (
	// ErrPolicyNotFound: the bucket has no policy for the function's version.
	ErrPolicyNotFound = errors.New("no such policy")
	// ErrPolicyConflict: the policy has another revision than expected; the
	// error is a [*PolicyConflict].
	ErrPolicyConflict = errors.New("policy was changed meanwhile")
)

// PolicyConflict is a change that expected another revision. It wraps
// [ErrPolicyConflict].
type PolicyConflict struct {
	Function, Version string
	Expected          uint64 // 0: that there is no policy
	Current           uint64 // 0: there is none, or it is not known
}

func (c *PolicyConflict) Error() string {
	return fmt.Sprintf("policy %q version %q: expected revision %d, is at %d: %v",
		c.Function, c.Version, c.Expected, c.Current, ErrPolicyConflict)
}

// Unwrap makes errors.Is(err, ErrPolicyConflict) true.
func (c *PolicyConflict) Unwrap() error { return ErrPolicyConflict }

// policyKey is where the policy of a function's version is kept.
func policyKey(function, version string) string {
	return ratelimit.EscapeToken(function) + "." + ratelimit.EscapeToken(version)
}
