package storetest

import (
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

var _ ratelimit.Clock = (*Clock)(nil)

// Clock is a [ratelimit.Clock] for tests. It follows time.Now, which is virtual
// inside a testing/synctest bubble, or stands still until it is told to move,
// and it may be set off the truth. Make one with [NewClock] or
// [NewManualClock]. All methods may be called concurrently.
type Clock struct {
	truth  func() counter.Instant
	manual atomic.Int64 // the truth of a manual clock
	skew   atomic.Int64
	bound  atomic.Int64
}

// NewClock returns a clock that follows time.Now, is right and knows it.
func NewClock() *Clock {
	return &Clock{truth: func() counter.Instant { return counter.InstantOf(time.Now()) }}
}

// NewManualClock returns a clock that shows at until [Clock.Advance] moves it.
func NewManualClock(at counter.Instant) *Clock {
	c := &Clock{}
	c.manual.Store(int64(at))
	c.truth = func() counter.Instant { return counter.Instant(c.manual.Load()) }
	return c
}

// Now implements [ratelimit.Clock]: the truth plus the skew.
func (c *Clock) Now() counter.Instant { return c.truth().Add(time.Duration(c.skew.Load())) }

// Error implements [ratelimit.Clock]: what [Clock.Set] said, zero before.
func (c *Clock) Error() time.Duration { return time.Duration(c.bound.Load()) }

// Advance moves a manual clock by d; on another one it does nothing.
func (c *Clock) Advance(d time.Duration) { c.manual.Add(int64(d)) }

// Set makes the clock wrong by skew from now on and lets it claim an error of
// at most bound. A skew beyond the bound breaks the contract of
// [ratelimit.Clock], on purpose.
func (c *Clock) Set(skew, bound time.Duration) {
	// The wider claim is in force while the two change, whichever way.
	if int64(bound) > c.bound.Load() {
		c.bound.Store(int64(bound))
		c.skew.Store(int64(skew))
		return
	}
	c.skew.Store(int64(skew))
	c.bound.Store(int64(bound))
}
