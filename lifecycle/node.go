package lifecycle

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// State is a [Node] as others see it.
type State struct {
	Phase Phase `json:"phase"`
	// Ready: callers should be sent here.
	Ready bool `json:"ready"`
	// Degraded: decisions are made without all that the node wants for them.
	Degraded bool `json:"degraded"`
	// Failing is the checks that do not hold now, in the order in which they
	// were given. A node may be ready with failing checks; it is degraded then.
	Failing []Fault `json:"failing,omitempty"`
}

func (s State) equal(o State) bool {
	return s.Phase == o.Phase && s.Ready == o.Ready && s.Degraded == o.Degraded &&
		slices.Equal(s.Failing, o.Failing)
}

// Node is the life of one process. Use [New]; the zero Node is not usable. All
// methods may be called concurrently.
type Node struct {
	cfg      Config
	probers  []*prober
	log      *slog.Logger
	metrics  *metrics
	sticky   func() bool
	degraded func() bool
	observe  func(State)

	cancel  context.CancelFunc // ends the loop; nil before Start
	running sync.WaitGroup     // the loop and every probe still out

	mu      sync.Mutex
	state   State
	holding time.Time // since when all checks hold; zero while one does not
}

// Option swaps a collaborator of a [Node].
type Option func(*Node)

// WithLogger says where changes of state are told. The default is nowhere.
func WithLogger(log *slog.Logger) Option { return func(n *Node) { n.log = log } }

// WithRegisterer registers headgate_ready and headgate_phase.
func WithRegisterer(reg prometheus.Registerer) Option {
	return func(n *Node) { n.metrics = newMetrics(reg) }
}

// WithSticky asks may whether a node that was ready once stays ready while a
// check fails. The default is that it does.
func WithSticky(may func() bool) Option { return func(n *Node) { n.sticky = may } }

// WithDegraded asks is whether decisions are degraded now, beyond what failing
// checks say.
func WithDegraded(is func() bool) Option { return func(n *Node) { n.degraded = is } }

// WithObserver calls see with every new state before anybody else can see it:
// a door opened there is open when /readyz first says 200. Calls do not
// overlap; see must not block and must not call the Node.
func WithObserver(see func(State)) Option { return func(n *Node) { n.observe = see } }

// New returns a Node in phase Starting. It starts nothing. The error is from
// [Config.Validate]. Without checks a node is ready as soon as it joins.
func New(cfg Config, checks []Check, opts ...Option) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("lifecycle: %w", err)
	}
	n := &Node{
		cfg:      cfg,
		log:      slog.New(slog.DiscardHandler),
		metrics:  newMetrics(nil),
		sticky:   func() bool { return true },
		degraded: func() bool { return false },
		observe:  func(State) {},
	}
	for _, c := range checks {
		n.probers = append(n.probers, newProber(c))
	}
	for _, opt := range opts {
		opt(n)
	}
	n.state.Failing = n.faults()
	n.metrics.show(n.state)
	return n, nil
}

// State is the node's state now.
func (n *Node) State() State {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state
}

// Start moves the node to Joining and begins to probe. It does not wait for
// readiness. The error is a [*MoveError] when the node was started before or
// is already leaving.
func (n *Node) Start(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.moveLocked(Joining); err != nil {
		return fmt.Errorf("lifecycle: start: %w", err)
	}
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	n.running.Go(func() { n.loop(ctx) })
	return nil
}

// Drain moves the node to Draining: it is not ready from now on and never
// again. A node that drains or stopped already stays as it is.
func (n *Node) Drain() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state.Phase >= Draining {
		return
	}
	// Every phase before Draining leads to it.
	_ = n.moveLocked(Draining)
}

// Stop ends the probing, waits for it until ctx ends, and moves the node to
// Stopped. It is idempotent. The error is ctx's, when a check did not return.
func (n *Node) Stop(ctx context.Context) error {
	n.Drain()
	n.mu.Lock()
	cancel := n.cancel
	n.mu.Unlock()
	if cancel != nil {
		cancel()
	}
	done := make(chan struct{})
	go func() { n.running.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("lifecycle: stop: a check did not return: %w", ctx.Err())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.state.Phase == Draining {
		_ = n.moveLocked(Stopped) // Draining leads to Stopped
	}
	return nil
}

// moveLocked changes the phase and publishes what follows from it.
func (n *Node) moveLocked(to Phase) error {
	phase, err := n.state.Phase.Move(to)
	if err != nil {
		return err
	}
	next := n.state
	next.Phase = phase
	next.Ready = phase == Ready
	n.publishLocked(next)
	return nil
}

func (n *Node) publishLocked(next State) {
	if next.equal(n.state) {
		return
	}
	n.observe(next)
	n.metrics.show(next)
	n.tell(n.state, next)
	n.state = next
}

// tell logs what an operator would ask for afterwards: phases, and readiness
// lost or regained. Changing reasons of a failing check are not news.
func (n *Node) tell(was, is State) {
	switch {
	case was.Phase != is.Phase:
		n.log.Info("phase changed", "from", was.Phase.String(), "to", is.Phase.String())
	case was.Ready != is.Ready:
		n.log.Warn("readiness changed", "ready", is.Ready, "failing", names(is.Failing))
	case was.Degraded != is.Degraded:
		n.log.Warn("degradation changed", "degraded", is.Degraded, "failing", names(is.Failing))
	}
}

func names(faults []Fault) []string {
	out := make([]string, 0, len(faults))
	for _, f := range faults {
		out = append(out, f.Check)
	}
	return out
}
