package kvstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// caller is one exchange in a line, and who waits for it: somebody here, or
// another node, to which it is answered as soon as it is settled.
type caller struct {
	ctx  context.Context
	x    ratelimit.Exchange
	name name
	way  itinerary

	claim atomic.Int32 // a claimState
	// tell takes the answer, once; it must not wait.
	tell func(outcome)
	// until is for how long another node waits; zero: somebody here does, and
	// says in ctx for how long.
	until time.Time
}

// claimState says whether an exchange may be part of a write.
type claimState = int32

// A caller that gives up needs to know whether its exchange was sent; a worker
// that sends, whether the caller is still there. Whoever changes the state from
// idle first has it.
const (
	idle    claimState = iota // nothing of it is on its way to the store
	claimed                   // a worker decides and sends it
	doubted                   // it was sent and lost sight of; a worker asks the record
	gone                      // the caller gave up before it was claimed
)

// outcome is what a caller gets.
type outcome struct {
	grant   ratelimit.Grant
	state   *state // the grant's State, of what a settler settled; nil with an error
	err     error
	applied bool // a write was made for it
}

// state is a counter as all who were settled together get it.
type state struct {
	counter counter.Counter // never changed
	onWire  []byte          // part of an answer to another node; nil until there is one
}

func (o outcome) result() exchangeResult {
	switch {
	case o.err != nil:
		return errorResult(o.err)
	case o.applied:
		return exchangeApplied
	default:
		return exchangeRead
	}
}

func newCaller(ctx context.Context, x ratelimit.Exchange, way itinerary, tell func(outcome)) *caller {
	return &caller{ctx: ctx, x: x, name: nameOf(x), way: way, tell: tell}
}

// served reports whether the exchange is another node's, whose owner or deputy
// this one is.
func (c *caller) served() bool { return !c.until.IsZero() }

// ended is the error of a caller that no longer waits.
func (c *caller) ended() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.served() && !time.Now().Before(c.until) {
		return context.DeadlineExceeded
	}
	return nil
}

// wait returns the answer, or what the end of the caller's context means.
func (c *caller) wait(answer <-chan outcome) outcome {
	select {
	case o := <-answer:
		return o
	case <-c.ctx.Done():
	}
	if c.claim.CompareAndSwap(idle, gone) {
		return outcome{err: fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, c.ctx.Err())}
	}
	select {
	case o := <-answer: // it came at the same moment
		return o
	default:
		return outcome{err: fmt.Errorf("%w: %w", ratelimit.ErrUnknown, c.ctx.Err())}
	}
}

// overdue reports whether the exchange may still be on its way to the store by
// another way, with a wish that nobody waits for there. That it is settled is
// then written also when it comes to nothing: units that are charged for it
// later would be nobody's.
func (c *caller) overdue() bool {
	return c.way.repeated && (c.x.Issued != 0 || len(c.x.Needs) > 0 || c.x.Want > 0)
}

// left reports whether nobody waits for the answer any more.
func (c *caller) left() bool { return c.claim.Load() == gone || c.ended() != nil }

// letGo tells a caller who left, in case it does not know.
func (c *caller) letGo() { c.fail(fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, c.ended())) }

// take claims the exchange for a write; false: the caller left.
func (c *caller) take() bool {
	return c.ended() == nil && (c.claim.CompareAndSwap(idle, claimed) || c.claim.Load() == doubted)
}

// doubt notes that the exchange was sent, no earlier than the given instant, and
// that the record is to tell what became of it. It reports whether a record can:
// some exchanges have no name in it. The exchange must be claimed.
func (c *caller) doubt(sent counter.Instant) bool {
	if c.name == (name{}) || !(c.way.recorded || c.way.travels) {
		return false
	}
	if c.way.issued == 0 {
		c.way.issued = sent
	}
	c.way.travels, c.way.repeated = true, true
	c.claim.Store(doubted)
	return true
}

// fail answers with an error.
func (c *caller) fail(err error) {
	if c.claim.Load() == doubted {
		err = inDoubt(err)
	}
	c.tell(outcome{err: err})
}

// inDoubt is the error of an exchange that may have been applied. An error that
// says that nothing was is not wrapped but told.
func inDoubt(err error) error {
	if errors.Is(err, ratelimit.ErrUnknown) {
		return err
	}
	return fmt.Errorf("%w: %s", ratelimit.ErrUnknown, err.Error())
}

// release says that nothing of the exchange was applied, nor ever will be, by
// what was sent last.
func (c *caller) release() { c.claim.CompareAndSwap(claimed, idle) }
