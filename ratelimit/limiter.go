package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/puzpuzpuz/xsync/v4"
)

// Limiter decides invocations against counters kept in a [Store]. Use [New];
// the zero Limiter is not usable. All methods may be called concurrently.
type Limiter struct {
	store      Store
	clock      Clock
	finder     Finder
	keys       *Keyring
	cfg        Config
	log        *slog.Logger
	registerer prometheus.Registerer
	nodes      func() int
	metrics    *metrics

	routes     *xsync.Map[string, *routes]
	scopes     *xsync.Map[routeKey, *scope]
	compiled   *xsync.Map[*Policy, *compiled]
	compiledAt atomic.Uint64
	plans      atomic.Uint64 // how many policies were compiled
	cells      atomic.Int64  // those kept
	roster     roster
	held       holds

	breaker  breaker
	failed   atomic.Pointer[cell] // the last cell whose exchange failed
	dispatch dispatcher
	serial   atomic.Uint64
	pace     pace         // of exchanges
	fleet    atomic.Int64 // the nodes known when the store last answered
	ticked   atomic.Int64 // the instant of the last tick; 0 before the first
	resumed  atomic.Int64 // the instant at which the node last came out of a standstill
	healed   atomic.Int64 // the instant by which every node has posted what it admitted without the store
	epoch    atomic.Uint32

	activeMu sync.Mutex
	active   []*cell // cells to look after at the next tick
	visiting []*cell // those being looked after

	ctx      context.Context
	cancel   context.CancelFunc
	stopping atomic.Bool
	started  atomic.Bool
	loops    sync.WaitGroup
}

// New returns a Limiter that is to be started. It does no I/O. The error is
// from [Config.Validate].
func New(store Store, clock Clock, finder Finder, keys *Keyring, cfg Config, opts ...Option) (*Limiter, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("ratelimit: config: %w", err)
	}
	l := &Limiter{
		store: store, clock: clock, finder: finder, keys: keys, cfg: cfg,
		log:      slog.New(slog.DiscardHandler),
		nodes:    func() int { return 1 },
		routes:   xsync.NewMap[string, *routes](),
		scopes:   xsync.NewMap[routeKey, *scope](),
		compiled: xsync.NewMap[*Policy, *compiled](),
		breaker:  breaker{attempt: cfg.Attempt},
	}
	for _, opt := range opts {
		opt(l)
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.metrics = newMetrics(l.registerer, l)
	// Serials of one node must not repeat, across restarts too.
	l.serial.Store(rand.Uint64() >> 1)
	l.epoch.Store(1)
	l.dispatch.max = cfg.MaxInFlight
	l.dispatch.run = func(c *cell) {
		for l.exchangeOnce(c, false) {
		}
	}
	return l, nil
}

// Start starts the settlement loop. Before it, and after Stop, [Limiter.Decide]
// works but nothing is handed back.
func (l *Limiter) Start(context.Context) error {
	if !l.started.CompareAndSwap(false, true) {
		return errors.New("ratelimit: started twice")
	}
	l.loops.Go(l.settleLoop)
	l.loops.Go(l.probeLoop)
	return nil
}

// UnsettledError says what a stopped limiter could not settle: units that stay
// charged though nobody spent them, or were admitted and never charged. Units
// asked for in an exchange whose outcome is not known count as charged.
type UnsettledError struct {
	Units    int64
	Counters int64
}

func (e *UnsettledError) Error() string {
	return fmt.Sprintf("%d units on %d counters stay unsettled", e.Units, e.Counters)
}

// Stop refuses further decisions with [ErrStopped], hands back all leases and
// posts what is owed, retrying while ctx allows. The error is an
// [*UnsettledError] when something was left. Stopping twice is harmless.
func (l *Limiter) Stop(ctx context.Context) error {
	if l.stopping.Swap(true) {
		return nil
	}
	for l.unsettled() && ctx.Err() == nil {
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
		}
	}
	l.cancel()
	l.loops.Wait()
	l.dispatch.wait()
	if units, counters := l.owed(); units > 0 {
		return &UnsettledError{Units: units, Counters: counters}
	}
	return nil
}

// Degraded reports whether the store is away: decisions are made without it.
func (l *Limiter) Degraded() bool { return l.breaker.open() }

// Unsettled is how many units this node has yet to hand back or to post, those
// among them that it asked for and cannot tell whether they were charged.
func (l *Limiter) Unsettled() int64 {
	units, _ := l.owed()
	return units
}

// Cells is how many counters this node remembers.
func (l *Limiter) Cells() int { return int(l.cells.Load()) }

// Busy is how many of them are being looked after: asked lately, leased from, or
// owing something.
func (l *Limiter) Busy() int {
	l.activeMu.Lock()
	defer l.activeMu.Unlock()
	return len(l.active) + len(l.visiting)
}

func (l *Limiter) owed() (units, counters int64) {
	for _, c := range l.activeCells() {
		c.mu.Lock()
		if n := c.owed(); n > 0 {
			units, counters = units+n, counters+1
		}
		c.mu.Unlock()
	}
	return units, counters
}

// storeAway says once that the store went away.
func (l *Limiter) storeAway(err error) {
	l.log.Warn("store is away; deciding without it", "error", err)
}

// storeBack says once that the store is back.
func (l *Limiter) storeBack() {
	l.healed.Store(int64(l.clock.Now().Add(l.cfg.healingTime())))
	l.log.Info("store is back")
}
