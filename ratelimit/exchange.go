package ratelimit

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Store holds the shared counters. Exchange is atomic per key and durable when
// it returns. It must be safe for concurrent use.
//
// Errors: [ErrUnavailable] (nothing was applied), [ErrUnknown] (it may have
// been), [ErrNewerFormat] (nothing was applied), and the context's own, which
// means the same as ErrUnknown.
type Store interface {
	Exchange(ctx context.Context, x Exchange) (Grant, error)
}

// Clock is the store's clock as a node knows it. It must be safe for concurrent
// use, cost no more than reading the local monotonic clock, and never step
// because the wall clock did.
type Clock interface {
	// Now is the instant by the store's clock.
	Now() counter.Instant
	// Error bounds how far Now may be off, in either direction.
	Error() time.Duration
}

// Exchange is one node's dealing with one counter: hand back, post, take, in
// that order, in one atomic step. It is data, so that it can travel, and nothing
// in it is changed once it was sent: a store may be late with it.
//
// An Exchange whose Needs, Want, Returns and Posts are all empty is a refresh:
// it reads, writes nothing and charges nothing.
type Exchange struct {
	Key   Key
	Rates []counter.Rate // those of the policy in force at the node; not empty

	Returns []Return // units charged before and not spent
	Posts   []Post   // units admitted without having been charged
	Needs   []Need   // invocations waiting, first come first served
	Want    int64    // units wanted ahead, 0 in exact mode

	// Life is how long after the store's decision the granted units may be
	// spent. 0 means only those who wait now spend them (exact mode). The
	// settling function shortens it, see [Grant.Until].
	Life time.Duration

	// Reset forgets all that was spent before anything else is done, and Add
	// gives that many units extra in the current windows (operators' doing).
	Reset bool
	Add   int64

	// Node and Serial name this exchange, so that a repeated one is answered
	// and not applied again. Serials of one node never repeat, across restarts
	// too.
	Node   string
	Serial uint64

	// Issued marks a repeat: the exchange of this Node and Serial was sent
	// before, no earlier than Issued by the store's clock, and its outcome is
	// not known. If it was applied, the store answers with the grant that it
	// came to; if not, it applies this one, which may ask for less. The error is
	// [ErrForgotten] where that can no longer be told. Zero: the first time.
	Issued counter.Instant
}

// Return is units of a lease that ended, or that nobody wanted, charged until
// Until.
type Return struct {
	Units int64
	Until counter.Instant // the Grant.Until that they were charged with
}

// Post is units admitted without a charge.
type Post struct {
	Units int64
	At    counter.Instant // when they were admitted
}

// Need is Count waiting invocations of the same Cost in a row. Cost is at
// least 1.
type Need struct {
	Cost  int64
	Count int64
}

// Grant is what an exchange came to.
type Grant struct {
	// Units is what was charged and now belongs to the node: what its needs
	// came to, served first come first served by cost, plus what it got ahead.
	Units int64
	// Until is the last instant at which Units may be spent, and the instant
	// they were charged to. In exact mode it is the end of the slice in which
	// the store decided.
	Until counter.Instant
	// At is the instant of the store's clock at which this was decided.
	At counter.Instant
	// State is the counter after the exchange, and after those that the store
	// settled together with it. It belongs to the receiver.
	State counter.Counter
}
