package kvstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Bounds of a [settler].
const (
	// freshness is how old the memory of a record may be to answer an exchange
	// that changes nothing. Longer than an exchange takes, so that a crowd that
	// asks at once shares one read; short enough that a node which is told
	// "none" sees within its next attempt what another node handed back.
	freshness = 20 * time.Millisecond
	// rememberDefault bounds the counters whose records are remembered.
	rememberDefault = 100_000
	// attemptDefault bounds one request to the store.
	attemptDefault = 100 * time.Millisecond
)

// settlerConfig is what a [settler] needs to know; zero fields take the
// defaults above.
type settlerConfig struct {
	// Attempt bounds one request to the store. What was not acknowledged by
	// then may have been applied.
	Attempt time.Duration
	// Remember is how many counters' records are remembered, so that their next
	// exchange takes one round trip.
	Remember int
	// Node names this node in the records it writes.
	Node string
	// Apart is by how much the wall clocks of the store's servers may differ;
	// nil: by nothing that matters.
	Apart func() time.Duration
}

// settler settles exchanges in the counters bucket, by compare-and-swap on the
// key's sequence. For each counter at most one write is in flight, and all
// exchanges that wait for the counter are settled, in their order, by the next
// one. All methods may be called concurrently.
type settler struct {
	bucket  *countersBucket
	clock   ratelimit.Clock
	cfg     settlerConfig
	metrics *metrics
	serial  atomic.Uint64 // of the last write

	// base ends when what is in flight shall be given up.
	base    context.Context
	abandon context.CancelFunc
	workers sync.WaitGroup

	mu      sync.Mutex
	stopped bool
	// lines are the counters that somebody waits for. A line's worker alone
	// uses the memory of its counter; it is taken out of memories meanwhile.
	lines    map[ratelimit.Key]*line
	memories *simplelru.LRU[ratelimit.Key, memory]
}

// line is who waits for one counter. The settler's mutex guards it.
type line struct {
	key     ratelimit.Key
	waiting []*caller
}

// memory is a record as this node last saw it; the counter in it is never
// changed, only replaced.
type memory struct {
	record   record
	sequence uint64 // 0: the key has no record
	// confirmed is when the store was asked that said so.
	confirmed time.Time
}

// newSettler returns a settler for a stream that holds a key-value bucket. It
// does no I/O; until the stream exists exchanges are [ratelimit.ErrUnavailable].
func newSettler(
	js jetstream.JetStream, stream string, clock ratelimit.Clock, cfg settlerConfig, m *metrics,
) *settler {
	if cfg.Attempt <= 0 {
		cfg.Attempt = attemptDefault
	}
	if cfg.Remember <= 0 {
		cfg.Remember = rememberDefault
	}
	if cfg.Apart == nil {
		cfg.Apart = func() time.Duration { return 0 }
	}
	memories, err := simplelru.NewLRU[ratelimit.Key, memory](cfg.Remember, nil)
	if err != nil {
		panic(err) // the size is positive
	}
	s := &settler{
		bucket:   newCountersBucket(js, stream),
		clock:    clock,
		cfg:      cfg,
		metrics:  m,
		lines:    make(map[ratelimit.Key]*line),
		memories: memories,
	}
	// No process makes a write in a nanosecond, so the serials of the next one
	// under this name start above all of these.
	s.serial.Store(uint64(time.Now().UnixNano()))
	s.base, s.abandon = context.WithCancel(context.Background())
	return s
}

// Exchange implements [ratelimit.Store]. The context bounds this exchange alone:
// others that are settled in the same write go on without it. An exchange whose
// context ends before it was sent is [ratelimit.ErrUnavailable], afterwards
// [ratelimit.ErrUnknown]; both wrap the context's error.
func (s *settler) Exchange(ctx context.Context, x ratelimit.Exchange) (ratelimit.Grant, error) {
	return s.exchange(ctx, x, straight(x))
}

// itinerary is how an exchange came here. The zero itinerary: straight, for the
// first time, and not to be known again.
type itinerary struct {
	// recorded: its node may repeat it, so the record is to tell of it.
	recorded bool
	// travels: another node may be asked for the same exchange, or was.
	travels bool
	// issued is the earliest instant at which it can have been settled.
	issued counter.Instant
	// repeated: it may have been settled by another node already.
	repeated bool
}

// straight is the itinerary of an exchange that a node settles for itself. Its
// limiter repeats it when it does not learn what became of it.
func straight(x ratelimit.Exchange) itinerary {
	if x.Issued != 0 {
		return itinerary{travels: true, repeated: true, issued: x.Issued}
	}
	return itinerary{recorded: true}
}

func (s *settler) exchange(ctx context.Context, x ratelimit.Exchange, way itinerary) (ratelimit.Grant, error) {
	started := time.Now()
	answer := make(chan outcome, 1)
	c := newCaller(ctx, x, way, func(o outcome) { answer <- o })
	if err := s.enqueue(c); err != nil {
		s.metrics.exchanged(exchangeUnavailable, time.Since(started))
		return ratelimit.Grant{}, err
	}
	o := c.wait(answer)
	s.metrics.exchanged(o.result(), time.Since(started))
	if o.err == nil {
		o.grant.State = o.state.counter.Clone()
	}
	return o.grant, o.err
}

// serve settles an exchange of another node, which waits that long, and calls
// respond with what it comes to, once and perhaps at once.
func (s *settler) serve(x ratelimit.Exchange, way itinerary, patience time.Duration, respond func(outcome)) {
	started := time.Now()
	c := newCaller(s.base, x, way, func(o outcome) {
		s.metrics.exchanged(o.result(), time.Since(started))
		respond(o)
	})
	c.until = started.Add(patience)
	if err := s.enqueue(c); err != nil {
		c.tell(outcome{err: err})
	}
}

// enqueue puts a caller into the counter's line and sees to it that somebody
// serves the line.
func (s *settler) enqueue(c *caller) error {
	if err := checkExchange(c.x); err != nil {
		return err
	}
	if err := c.ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errStopped
	}
	if l, ok := s.lines[c.x.Key]; ok {
		l.waiting = append(l.waiting, c)
		return nil
	}
	l := &line{key: c.x.Key, waiting: []*caller{c}}
	s.lines[l.key] = l
	r := &round{settler: s, line: l}
	r.mem, r.known = s.memories.Get(l.key)
	s.workers.Add(1)
	go s.work(r)
	return nil
}

// errBadExchange: a bug of the caller's; nothing was applied.
var errBadExchange = fmt.Errorf("%w: bad exchange", ratelimit.ErrUnavailable)

func checkExchange(x ratelimit.Exchange) error {
	switch {
	case !validKey(x.Key):
		return fmt.Errorf("%w: key of %d bytes is too long or has bytes that no key has", errBadExchange, len(x.Key))
	case len(x.Rates) == 0:
		return fmt.Errorf("%w: no rates", errBadExchange)
	}
	return nil
}

// validKey keeps wildcards, blanks and long texts out of subjects.
func validKey(key ratelimit.Key) bool {
	if key == "" || len(key) > ratelimit.MaxKeyBytes || key[0] == '.' || key[len(key)-1] == '.' {
		return false
	}
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '-', c == '_', c == '=', c == '/':
		case c == '.' && key[i-1] != '.':
		default:
			return false
		}
	}
	return true
}

// work settles a line's exchanges until nobody waits in it.
func (s *settler) work(r *round) {
	defer s.workers.Done()
	for s.gather(r) {
		if err := r.step(); err != nil {
			r.fail(err)
		}
	}
}

// gather adds to a round all who wait in its line. When there is nobody to
// serve it closes the line and reports false.
func (s *settler) gather(r *round) bool {
	for {
		s.mu.Lock()
		r.callers = append(r.callers, r.line.waiting...)
		r.line.waiting = nil
		s.mu.Unlock()
		if r.dropGone(); len(r.callers) > 0 {
			return true
		}
		if s.closeLine(r) {
			return false
		}
	}
}

// closeLine puts the memory of a round's counter away, unless somebody waits.
func (s *settler) closeLine(r *round) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(r.line.waiting) > 0 {
		return false
	}
	delete(s.lines, r.line.key)
	if r.known {
		s.memories.Add(r.line.key, r.mem)
	} else {
		s.memories.Remove(r.line.key)
	}
	return true
}

// Stop refuses new exchanges and waits for those that are in flight. When the
// context ends first they are given up, with the error their state allows, and
// Stop returns the context's error. It may be called again.
func (s *settler) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()

	done := make(chan struct{})
	go func() {
		s.workers.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("exchanges in flight were given up: %w", ctx.Err())
	}
	s.abandon()
	<-done // every request in flight ends with base
	return err
}

// errorResult is how an exchange ended that has this error.
func errorResult(err error) exchangeResult {
	switch {
	case errors.Is(err, ratelimit.ErrNewerFormat):
		return exchangeRefused
	case errors.Is(err, ratelimit.ErrUnknown):
		return exchangeUnknown
	default:
		return exchangeUnavailable
	}
}
