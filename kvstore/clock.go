package kvstore

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

var _ ratelimit.Clock = (*storeClock)(nil)

// Bounds of the clock.
const (
	// driftPPM bounds how far two machines' monotonic clocks drift apart, in
	// parts of a million: twice what time synchronisation may slew by.
	driftPPM = 1000
	// maxFollow is how far the store's stamps may be off before they count as
	// a step of a server's wall clock instead of drift.
	maxFollow = 250 * time.Millisecond
	// unsyncedError is the Error of a clock that never heard from the store:
	// no lease survives it.
	unsyncedError = 24 * time.Hour
)

// storeClock is the store's clock: a monotonic reading plus an offset.
//
// JetStream stamps what it stores with the wall clock of the bucket's leader.
// Leadership moves, and servers' wall clocks differ, by an hour if nobody
// looks after them. So stamps set the clock once, at the first of the running
// nodes, and small differences are followed after that; a step is not, as long
// as the nodes agree: see [storeClock.observe].
type storeClock struct {
	base   time.Time // with a monotonic reading
	offset atomic.Int64
	known  atomic.Pointer[estimate] // nil before the first

	mu sync.Mutex // serialises observe
	// shift is this clock minus the stamps of the server that stamps now.
	shift time.Duration
}

// estimate is an offset as it was learned.
type estimate struct {
	offset int64         // nanoseconds from the monotonic reading to the store's clock
	err    time.Duration // either way, when it was learned
	at     time.Duration // since base
}

// sample is one stamp of the store on a message of ours.
type sample struct {
	sent, heard time.Duration // since base, by [storeClock.local]
	stamp       counter.Instant
}

// trip is how long the store's answer took.
func (s sample) trip() time.Duration { return s.heard - s.sent }

// observation is what became of a sample.
type observation uint8

const (
	clockSet      observation = iota // first estimate
	clockKept                        // agrees with what is known
	clockFollowed                    // corrected by a little
	clockHeld                        // the stamps stepped; the clock did not
	clockAdopted                     // this node was the odd one and took the others' clock
)

// newStoreClock is unsynced: it reads as the machine's wall clock.
func newStoreClock() *storeClock {
	c := &storeClock{base: time.Now()}
	c.offset.Store(c.base.UnixNano())
	return c
}

// local is the monotonic time since the clock was made.
func (c *storeClock) local() time.Duration { return time.Since(c.base) }

// Now implements [ratelimit.Clock].
func (c *storeClock) Now() counter.Instant {
	return counter.Instant(c.offset.Load() + int64(time.Since(c.base)))
}

// Error implements [ratelimit.Clock]: the error when the offset was learned
// and what the clocks may have drifted since.
func (c *storeClock) Error() time.Duration {
	e := c.known.Load()
	if e == nil {
		return unsyncedError
	}
	return e.errorAt(c.local())
}

func (e *estimate) errorAt(local time.Duration) time.Duration {
	return e.err + (local-e.at)*driftPPM/1_000_000
}

// synced reports whether the clock ever heard from the store.
func (c *storeClock) synced() bool { return c.known.Load() != nil }

// sinceWall is the clock minus the machine's wall clock.
func (c *storeClock) sinceWall() time.Duration { return c.Now().Sub(counter.InstantOf(time.Now())) }

// shifted is this clock minus the stamps of the server that stamps now; 0
// unless some server's wall clock stepped.
func (c *storeClock) shifted() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shift
}

// observe learns from a sample. peers are the offsets that would put this node
// on the clocks of other synced nodes, as heard lately.
//
// The offset lies between stamp-heard and stamp-sent. As long as that agrees
// with what is known, the tighter of the two is kept. A small disagreement is
// followed, by no more than it takes to agree. A large one is a step: if the
// other nodes' clocks agree with ours, or there are none, a server's wall
// clock stepped and ours stands; if they do not, ours stood still (a machine
// that was suspended) or was set from such a server, and theirs is taken.
func (c *storeClock) observe(s sample, peers []int64) observation {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high := int64(s.stamp)-int64(s.heard), int64(s.stamp)-int64(s.sent)
	half := time.Duration(high-low) / 2
	seen := &estimate{offset: low + int64(half), err: half + 1, at: s.heard}
	was := c.known.Load()
	if was == nil {
		if theirs, yes := odd(seen.offset, peers); yes {
			return c.adopt(s, seen, theirs)
		}
		c.set(seen)
		return clockSet
	}
	seen.offset += int64(c.shift)
	gap := seen.offset - was.offset
	slack := int64(seen.err + was.errorAt(s.heard))
	switch {
	case abs(gap) <= slack:
		c.keep(was, seen)
		return clockKept
	case abs(gap)-slack <= int64(maxFollow):
		// The nearest offset that the sample allows.
		near := *seen
		if gap > 0 {
			near.offset -= int64(seen.err)
		} else {
			near.offset += int64(seen.err)
		}
		c.set(&near)
		return clockFollowed
	}
	if theirs, yes := odd(was.offset, peers); yes {
		return c.adopt(s, seen, theirs)
	}
	c.shift -= time.Duration(gap)
	held := *was
	held.err, held.at = was.errorAt(s.heard), s.heard
	c.set(&held)
	return clockHeld
}

// concede makes a node that joined a moment ago take the clock of the nodes
// that were there before it, where it differs by more than may be followed. It
// reports whether it did.
func (c *storeClock) concede(elders []int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.known.Load()
	if was == nil {
		return false
	}
	theirs, yes := odd(was.offset, elders)
	if yes {
		c.shift += time.Duration(theirs - was.offset)
		c.set(&estimate{offset: theirs, err: adoptError + was.err, at: c.local()})
	}
	return yes
}

// keep sets the tighter of two estimates that agree.
func (c *storeClock) keep(was, seen *estimate) {
	if seen.err < was.errorAt(seen.at) {
		c.set(seen)
	}
}

// adopt takes the clock of the other nodes. How long their word was on its way
// is not known, so the error is generous.
func (c *storeClock) adopt(s sample, seen *estimate, theirs int64) observation {
	c.shift += time.Duration(theirs - seen.offset)
	c.set(&estimate{offset: theirs, err: adoptError + s.heard - s.sent, at: s.heard})
	return clockAdopted
}

// adoptError covers the way of another node's heartbeat to this one.
const adoptError = 20 * time.Millisecond

func (c *storeClock) set(e *estimate) {
	c.known.Store(e)
	c.offset.Store(e.offset)
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
