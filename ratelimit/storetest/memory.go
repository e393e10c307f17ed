package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

var _ ratelimit.Store = (*Memory)(nil)

// maxRemembered bounds the answers kept for repeated exchanges.
const maxRemembered = 4096

// silence is how long a store that answers nothing keeps a caller who has no
// deadline of its own.
const silence = time.Second

// Memory is a [ratelimit.Store] in memory, with faults on demand. It starts no
// goroutine: what arrives late is applied by whoever looks next, at the instant
// at which it arrived. Make one with [NewMemory]; all methods may be called
// concurrently.
type Memory struct {
	clock   ratelimit.Clock
	fault   FaultFunc
	observe func(Applied)

	mu       sync.Mutex
	counters map[ratelimit.Key]counter.Counter
	answers  map[exchangeID]ratelimit.Grant
	recent   []exchangeID // of answers, oldest first
	late     []delayed    // not yet applied
	away     Away
	stats    Stats
}

// Stats counts what a [Memory] did.
type Stats struct {
	Exchanges int // asked for, whatever became of them
	Writes    int // applied, and the counter changed
	Reads     int // applied, and nothing changed
	Repeats   int // answered from memory
	Forgotten int // repeats of which it could not tell
	Conflicts int // settlements thrown away
	Losses    int // exchanges of which a part was lost, outages included
}

// Applied is one exchange that a [Memory] applied.
type Applied struct {
	Exchange ratelimit.Exchange
	Before   counter.Counter // must not be changed
	Grant    ratelimit.Grant // must not be changed
}

// Away says whether a store is there. The zero Away: it is.
type Away uint8

// How a store is away.
const (
	Here     Away = iota
	Refusing      // ErrUnavailable at once
	Silent        // no answer: the context's error, or ErrUnknown after a second
)

type exchangeID struct {
	node   string
	serial uint64
}

type delayed struct {
	at counter.Instant
	x  ratelimit.Exchange
}

// Option sets up a [Memory].
type Option func(*Memory)

// WithFaults lets f decide what goes wrong.
func WithFaults(f FaultFunc) Option { return func(m *Memory) { m.fault = f } }

// WithObserver calls f for each exchange that is applied, in the order in which
// they are. It is called under the store's lock and must not call back.
func WithObserver(f func(Applied)) Option { return func(m *Memory) { m.observe = f } }

// NewMemory returns an empty store that decides by the clock.
func NewMemory(clock ratelimit.Clock, opts ...Option) *Memory {
	m := &Memory{
		clock:    clock,
		fault:    func(ratelimit.Exchange) Fault { return Fault{} },
		observe:  func(Applied) {},
		counters: make(map[ratelimit.Key]counter.Counter),
		answers:  make(map[exchangeID]ratelimit.Grant),
	}
	for _, opt := range opts {
		opt(m)
	}
	return m
}

// Exchange implements [ratelimit.Store].
func (m *Memory) Exchange(ctx context.Context, x ratelimit.Exchange) (ratelimit.Grant, error) {
	m.mu.Lock()
	m.stats.Exchanges++
	m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return ratelimit.Grant{}, fmt.Errorf("storetest: exchange not sent: %w", err)
	}

	f := m.fault(x)
	arrives := m.clock.Now().Add(f.Before)
	if err := wait(ctx, f.Before); err != nil {
		return ratelimit.Grant{}, m.abandon(x, f, arrives, err)
	}
	grant, err := m.arrive(ctx, x, f)
	if err != nil {
		return ratelimit.Grant{}, err
	}
	if err := wait(ctx, f.After); err != nil {
		return ratelimit.Grant{}, fmt.Errorf("storetest: waiting for the answer: %w", err)
	}
	if f.Loss == LostAnswer {
		m.lost()
		return ratelimit.Grant{}, fmt.Errorf("storetest: answer lost: %w", ratelimit.ErrUnknown)
	}
	return grant, nil
}

// abandon is a request whose caller gave up while it was on its way: it arrives
// all the same, unless it was to be lost.
func (m *Memory) abandon(x ratelimit.Exchange, f Fault, arrives counter.Instant, cause error) error {
	if f.Loss == NoLoss || f.Loss == LostAnswer {
		m.mu.Lock()
		m.late = append(m.late, delayed{arrives, x})
		m.mu.Unlock()
	}
	return fmt.Errorf("storetest: request on its way: %w", cause)
}

// arrive is a request at the store's door.
func (m *Memory) arrive(ctx context.Context, x ratelimit.Exchange, f Fault) (ratelimit.Grant, error) {
	m.mu.Lock()
	away, now := m.away, m.clock.Now()
	m.mu.Unlock()
	switch {
	case away == Silent:
		m.lost()
		if err := wait(ctx, silence); err != nil {
			return ratelimit.Grant{}, fmt.Errorf("storetest: no answer: %w", err)
		}
		return ratelimit.Grant{}, fmt.Errorf("storetest: no answer: %w", ratelimit.ErrUnknown)
	case away == Refusing || f.Loss == RefusedRequest:
		m.lost()
		return ratelimit.Grant{}, fmt.Errorf("storetest: refused: %w", ratelimit.ErrUnavailable)
	case f.Loss == LostRequest:
		m.lost()
		return ratelimit.Grant{}, fmt.Errorf("storetest: request lost: %w", ratelimit.ErrUnknown)
	case f.Loss == LateRequest:
		m.lost()
		m.mu.Lock()
		m.late = append(m.late, delayed{now.Add(f.Late), x})
		m.mu.Unlock()
		return ratelimit.Grant{}, fmt.Errorf("storetest: request late: %w", ratelimit.ErrUnknown)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUp(now)
	if x.Issued != 0 && f.Forget {
		m.stats.Forgotten++
		return ratelimit.Grant{}, fmt.Errorf("storetest: repeat: %w", ratelimit.ErrForgotten)
	}
	return m.apply(x, now, f.Conflicts), nil
}

func (m *Memory) lost() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stats.Losses++
}

// wait lets d pass, or less when ctx ends first; then it returns ctx's error.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
