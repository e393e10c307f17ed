package kvstore

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/ratelimit"
)

var _ ratelimit.Store = (*Store)(nil)

// Store is the shared counters in JetStream, and what comes with them: the
// store's clock, the list of nodes, the connection. Use [New]; the zero Store
// is not usable. All methods may be called concurrently.
type Store struct {
	cfg     Config
	log     *slog.Logger
	version string
	metrics *metrics
	clock   *storeClock
	nodes   *nodes
	secret  *secret

	front   atomic.Pointer[front]    // set once joined
	link    atomic.Pointer[link]     // set once there is a connection
	refused atomic.Pointer[error]    // the buckets are of a newer release
	buckets atomic.Pointer[error]    // nil before they were looked at
	step    atomic.Pointer[joinStep] // what joining waits for
	joined  chan struct{}            // closed once joined

	mu      sync.Mutex
	dir     *dataDir      // embedded only
	server  *embedded     // embedded only, while it runs
	cancel  func()        // ends what Start began
	done    chan struct{} // closed when that has ended; nil before Start
	stopped bool
	// alone runs on what this node kept before it became a member, until that
	// is copied. Only the goroutine of Start uses it.
	alone *embedded
	// verified is when the buckets were last looked at. Only the goroutine of
	// Start uses it.
	verified time.Time
}

// link is a connection and its JetStream.
type link struct {
	nc *nats.Conn
	js jetstream.JetStream
}

// Option swaps a collaborator of a [Store]; settings belong in [Config].
type Option func(*options)

type options struct {
	log     *slog.Logger
	reg     prometheus.Registerer
	version string
}

// WithLogger logs to log; without it nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithRegisterer shows the metrics on reg; without it they stay private.
func WithRegisterer(reg prometheus.Registerer) Option { return func(o *options) { o.reg = reg } }

// WithVersion is the release that this node tells the others it runs.
func WithVersion(v string) Option { return func(o *options) { o.version = v } }

// New returns a Store that is not started. It does no I/O. The error is from
// [Config.Validate].
func New(cfg Config, opts ...Option) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	o := options{log: slog.New(slog.DiscardHandler)}
	for _, opt := range opts {
		opt(&o)
	}
	s := &Store{
		cfg:     cfg,
		log:     o.log,
		version: o.version,
		metrics: newMetrics(o.reg),
		clock:   newStoreClock(),
		secret:  newSecret(cfg.Secret),
		joined:  make(chan struct{}),
	}
	s.nodes = newNodes(cfg, o.version, s.clock, s.metrics, o.log)
	return s, nil
}

// Start begins to join the store and returns at once; [Store.Joined] tells when
// it is done. It returns only what waiting would not mend: [ErrDataDirInUse],
// [ErrDataDirNode], [ErrDataDirShape], [ErrStarted], and files of certificates
// or credentials that cannot be read. ctx bounds nothing beyond the call.
func (s *Store) Start(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done != nil || s.stopped {
		return ErrStarted
	}
	connect, err := s.prepare()
	if err != nil {
		return err
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.done = make(chan struct{})
	go func() {
		defer close(s.done)
		s.run(run, connect)
	}()
	return nil
}

// Exchange implements [ratelimit.Store]. Before the store is joined and after
// it is stopped it is [ratelimit.ErrUnavailable] at once, and also where the
// buckets belong to a newer release, then with [ratelimit.ErrNewerFormat] too.
func (s *Store) Exchange(ctx context.Context, x ratelimit.Exchange) (ratelimit.Grant, error) {
	if err := s.refused.Load(); err != nil {
		return ratelimit.Grant{}, *err
	}
	f := s.front.Load()
	if f == nil {
		return ratelimit.Grant{}, errNotJoined
	}
	return f.Exchange(ctx, x)
}

// Clock is the store's clock. It may be used at once; until it hears from the
// store it reads as the machine's wall clock, with an Error of a day.
func (s *Store) Clock() ratelimit.Clock { return s.clock }

// Joined is closed once the store is connected, its buckets stand, and one
// heartbeat was written and read back. It never opens again.
func (s *Store) Joined() <-chan struct{} { return s.joined }

// Live is how many nodes were last known to be alive, this one and those that
// drain included; at least 1. While the store is away it stands still.
func (s *Store) Live() int { return s.nodes.members.count() }

// SetPhase tells the other nodes what this one is doing. A node whose phase is
// "draining" takes no more exchanges for others.
func (s *Store) SetPhase(phase string) { s.nodes.setPhase(phase) }

// PhaseDraining is the phase of a node that is about to go.
const PhaseDraining = "draining"

// KeySecret is the key of the hash of subjects: the configured one at once, or
// else the one in the store, which is waited for within ctx.
func (s *Store) KeySecret(ctx context.Context) ([]byte, error) { return s.secret.wait(ctx) }

// JetStream is where the policies bucket is; nil before [Store.Joined].
func (s *Store) JetStream() jetstream.JetStream {
	if l := s.link.Load(); l != nil {
		return l.js
	}
	return nil
}

// Conn is the connection; nil before [Store.Joined]. It belongs to the Store.
func (s *Store) Conn() *nats.Conn {
	if l := s.link.Load(); l != nil {
		return l.nc
	}
	return nil
}
