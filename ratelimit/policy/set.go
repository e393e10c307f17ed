package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/prometheus/client_golang/prometheus"
)

// Set finds the policy in force among the sources, as the package comment says.
// It implements [ratelimit.Finder]. Use [NewSet]. It starts nothing: who made
// the sources starts and stops them. All methods may be called concurrently.
type Set struct {
	log     *slog.Logger
	metrics *metrics
	sources []Source // in order

	current    atomic.Pointer[snapshot]
	generation atomic.Uint64

	mu    sync.Mutex // serializes changes
	lists map[string][]*ratelimit.Policy
}

var _ ratelimit.Finder = (*Set)(nil)

// Option swaps a collaborator of a [Set]; settings belong in [Config].
type Option func(*Set)

// WithLogger logs to log. Without it nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(s *Set) { s.log = log } }

// WithRegisterer registers the metrics on reg. Without it they stay private.
func WithRegisterer(reg prometheus.Registerer) Option {
	return func(s *Set) { s.metrics = newMetrics(reg) }
}

// NewSet attaches to the sources that cfg.Order names. The error is from
// [Config.Validate], or names a source that is given twice.
func NewSet(cfg Config, sources []Source, opts ...Option) (*Set, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Set{lists: map[string][]*ratelimit.Policy{}}
	for _, opt := range opts {
		opt(s)
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.metrics == nil {
		s.metrics = newMetrics(nil)
	}
	ordered, err := orderSources(cfg.Order, sources)
	if err != nil {
		return nil, err
	}
	s.sources = ordered
	s.publish()
	for _, source := range ordered {
		source.Attach(&feed{s, source.Name()})
	}
	return s, nil
}

// orderSources leaves out what order does not name.
func orderSources(order []string, sources []Source) ([]Source, error) {
	byName := make(map[string]Source, len(sources))
	for _, source := range sources {
		if _, twice := byName[source.Name()]; twice {
			return nil, fmt.Errorf("policy: source %s is given twice", source.Name())
		}
		byName[source.Name()] = source
	}
	var ordered []Source
	for _, name := range order {
		if source, ok := byName[name]; ok {
			ordered = append(ordered, source)
		}
	}
	return ordered, nil
}

// Find implements [ratelimit.Finder].
func (s *Set) Find(ctx context.Context, function, version string) (p *ratelimit.Policy, degraded bool) {
	now := s.current.Load()
	for _, stage := range now.stages {
		if p := stage.listed.find(function, version); p != nil {
			return p, false
		}
		if stage.asked == nil {
			continue
		}
		p, failed := stage.asked.Ask(ctx, function, version)
		if p != nil {
			return p, false
		}
		degraded = degraded || failed
	}
	if now.fallback != nil {
		return now.fallback, false
	}
	return nil, degraded
}

// Generation implements [ratelimit.Finder].
func (s *Set) Generation() uint64 { return s.generation.Load() }

// Policies is what the listed sources hold, in the order of the sources, also
// what an earlier source overrules. The list belongs to the caller, its
// policies do not.
func (s *Set) Policies() []*ratelimit.Policy { return slices.Clone(s.current.Load().all) }

// DeniesWithoutStore reports whether any listed policy denies while the store
// is away, so that a node without the store should not be sent invocations.
func (s *Set) DeniesWithoutStore() bool { return s.current.Load().denies }

// ErrNotLoaded: a source has not told its policies yet.
var ErrNotLoaded = errors.New("policies are not loaded yet")

// Loaded is nil once every listed source has told its policies; it stays so.
// Else it is [ErrNotLoaded] with the names of those that have not.
func (s *Set) Loaded() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []string
	for _, source := range s.sources {
		_, loaded := s.lists[source.Name()]
		if _, asking := source.(Asking); !asking && !loaded {
			missing = append(missing, source.Name())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: %s", ErrNotLoaded, strings.Join(missing, ", "))
	}
	return nil
}

// publish makes the present lists the ones in force. mu is held, or nobody
// else knows the set yet.
func (s *Set) publish() {
	next := newSnapshot(s.sources, s.lists)
	s.current.Store(next)
	s.generation.Add(1)
	s.metrics.policies.Set(float64(len(next.all)))
	s.metrics.revision.Set(next.fingerprint())
}

// feed is a [Set] as one of its sources sees it.
type feed struct {
	set    *Set
	source string
}

func (f *feed) Replace(policies []*ratelimit.Policy) {
	s := f.set
	s.mu.Lock()
	before, loaded := s.lists[f.source]
	s.lists[f.source] = policies
	s.publish()
	s.mu.Unlock()

	if !loaded {
		s.log.Info("policies loaded", "source", f.source, "policies", len(policies))
		return
	}
	s.log.Info("policies changed", "source", f.source, "policies", len(policies), "before", len(before))
}

func (f *feed) Changed() { f.set.generation.Add(1) }

func (f *feed) Fault(err error) {
	f.set.metrics.faults[f.source].Inc()
	f.set.log.Warn("policy source has a fault, the last good policies stay in force",
		"source", f.source, "error", shorten(err))
}

// maxLogged bounds how many faults one log line tells.
const maxLogged = 10

// shorten keeps the first faults of many.
func shorten(err error) error {
	faults := Faults(err)
	if len(faults) <= maxLogged {
		return err
	}
	return fmt.Errorf("%w\nand %d more", joinFaults(faults[:maxLogged]), len(faults)-maxLogged)
}

func (f *feed) Recovered() {
	f.set.log.Info("policy source recovered", "source", f.source)
}
