package invocation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// Decider decides invocations; [ratelimit.Limiter] is one. It must be safe for
// concurrent use.
type Decider interface {
	// Decide charges the invocation on every counter that applies to it, or on
	// none. Errors: [ratelimit.ErrInvalid] as a [*ratelimit.FieldError],
	// [ratelimit.ErrStopped], the context's own.
	Decide(ctx context.Context, inv ratelimit.Invocation) (ratelimit.Decision, error)
	// Standings says how every rate that applies to the invocation stands, as
	// far as this node knows.
	Standings(ctx context.Context, inv ratelimit.Invocation) []ratelimit.Standing
}

// Gate is what all front doors ask. It validates, counts and times, and can be
// opened once and closed for good. Use [NewGate]. All methods may be called
// concurrently.
type Gate struct {
	decider Decider
	metrics *metrics
	logger  *slog.Logger

	door     atomic.Uint32 // shut, open, closed
	inFlight atomic.Int64
	idle     chan struct{} // closed when the gate is closed and nothing is in flight
	idleOnce sync.Once
}

// What a gate's door is. It only ever moves forward.
const (
	shut uint32 = iota
	open
	closed
)

// NewGate returns a gate before decider. It is shut: [Gate.Open] lets
// invocations in. The error is for a decider that is missing.
func NewGate(decider Decider, opts ...Option) (*Gate, error) {
	if decider == nil {
		return nil, errors.New("invocation: gate without a decider")
	}
	o := collect(opts)
	return &Gate{
		decider: decider, metrics: newMetrics(o.registerer), logger: o.logger, idle: make(chan struct{}),
	}, nil
}

// Open lets invocations in. It does nothing to a gate that is open or closed.
func (g *Gate) Open() { g.door.CompareAndSwap(shut, open) }

// Ready reports whether invocations are let in.
func (g *Gate) Ready() bool { return g.door.Load() == open }

// InFlight is how many decisions are being made right now.
func (g *Gate) InFlight() int64 { return g.inFlight.Load() }

// Close refuses every further invocation and waits for those in flight. The
// error wraps the context's when it ends first; the gate is closed all the
// same. Close may be called again.
func (g *Gate) Close(ctx context.Context) error {
	g.door.Store(closed)
	if g.inFlight.Load() == 0 {
		g.idleOnce.Do(func() { close(g.idle) })
	}
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("invocation: close gate, %d decisions in flight: %w", g.InFlight(), ctx.Err())
	}
}

// Decide validates and decides one invocation. A denial is a Decision, not an
// error. Errors: [ErrNotReady], [ErrClosed], and those of [Decider.Decide]; an
// invalid invocation is a [*ratelimit.FieldError] that names the field as
// [ratelimit.Invocation] does, and neither holds nor logs its value.
//
// It is invalid when the function is missing, an identifier is longer than
// [MaxIdentifierBytes], not UTF-8 or holds control characters, or the cost is
// negative or above [counter.MaxUnits]. A missing account or version is refused
// where a limit counts by it, which the Decider knows.
func (g *Gate) Decide(ctx context.Context, inv ratelimit.Invocation) (ratelimit.Decision, error) {
	if err := g.enter(); err != nil {
		g.metrics.refused.Inc()
		return ratelimit.Decision{}, err
	}
	defer g.leave()
	if err := validate(inv); err != nil {
		g.metrics.invalid.Inc()
		return ratelimit.Decision{}, err
	}
	start := time.Now()
	d, err := g.decider.Decide(ctx, inv)
	if err != nil {
		g.metrics.failed(err)
		return ratelimit.Decision{}, err
	}
	g.metrics.decided(d, time.Since(start))
	return d, nil
}

// Standings says how every rate that applies to the invocation stands, as far
// as this node knows; nil when the gate is not open or the invocation invalid.
// It charges nothing and counts nothing.
func (g *Gate) Standings(ctx context.Context, inv ratelimit.Invocation) []ratelimit.Standing {
	if g.enter() != nil {
		return nil
	}
	defer g.leave()
	if validate(inv) != nil {
		return nil
	}
	return g.decider.Standings(ctx, inv)
}

// enter counts first and looks at the door afterwards: whoever closes the gate
// does it the other way round, so that neither can miss the other.
func (g *Gate) enter() error {
	g.inFlight.Add(1)
	switch g.door.Load() {
	case open:
		return nil
	case closed:
		g.leave()
		return ErrClosed
	default:
		g.leave()
		return ErrNotReady
	}
}

func (g *Gate) leave() {
	if g.inFlight.Add(-1) == 0 && g.door.Load() == closed {
		g.idleOnce.Do(func() { close(g.idle) })
	}
}
