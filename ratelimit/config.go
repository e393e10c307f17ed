package ratelimit

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config is what an operator sets of a [Limiter]. Start from [DefaultConfig].
type Config struct {
	// Node is this node's name, unique in the fleet and kept across restarts.
	// Required.
	Node string
	// SyncInterval is how often counters with something to report are settled,
	// and the longest that a node which only denies goes without asking the
	// store again. 20 ms to 1 minute.
	SyncInterval time.Duration
	// Attempt is the longest that one exchange, and so one invocation, waits
	// for the store. 10 ms to 10 s.
	Attempt time.Duration
	// LeaseLife is the longest that a lease lives; a slice of the counter's
	// shortest sliding period cuts it further. 1 ms to 1 s.
	LeaseLife time.Duration
	// MaxCells bounds the counters that the node remembers, at least 1. Past it
	// decisions on further counters go straight to the store.
	MaxCells int
	// IdleAfter is when an unused cell is forgotten. At least SyncInterval.
	IdleAfter time.Duration
	// MaxInFlight bounds the exchanges under way at once, at least 1.
	MaxInFlight int
	// ProbeInterval is how often the store is tried while it is away. 10 ms to
	// 1 minute.
	ProbeInterval time.Duration
}

// DefaultConfig returns settings fit for a store on the same network. Node is
// still to be set.
func DefaultConfig() Config {
	return Config{
		SyncInterval:  100 * time.Millisecond,
		Attempt:       100 * time.Millisecond,
		LeaseLife:     100 * time.Millisecond,
		MaxCells:      1_000_000,
		IdleAfter:     time.Minute,
		MaxInFlight:   256,
		ProbeInterval: 250 * time.Millisecond,
	}
}

// Validate reports every fault, joined; each is a [*ConfigError].
func (c Config) Validate() error {
	var faults []error
	if c.Node == "" {
		faults = append(faults, &ConfigError{"Node", c.Node, "is required"})
	}
	spans := []struct {
		field    string
		value    time.Duration
		min, max time.Duration
	}{
		{"SyncInterval", c.SyncInterval, 20 * time.Millisecond, time.Minute},
		{"Attempt", c.Attempt, 10 * time.Millisecond, 10 * time.Second},
		{"LeaseLife", c.LeaseLife, time.Millisecond, time.Second},
		{"IdleAfter", c.IdleAfter, c.SyncInterval, 24 * time.Hour},
		{"ProbeInterval", c.ProbeInterval, 10 * time.Millisecond, time.Minute},
	}
	for _, s := range spans {
		if s.value < s.min || s.value > s.max {
			faults = append(faults, &ConfigError{s.field, s.value, fmt.Sprintf("must be %v to %v", s.min, s.max)})
		}
	}
	if c.MaxCells < 1 {
		faults = append(faults, &ConfigError{"MaxCells", c.MaxCells, "must be at least 1"})
	}
	if c.MaxInFlight < 1 {
		faults = append(faults, &ConfigError{"MaxInFlight", c.MaxInFlight, "must be at least 1"})
	}
	return errors.Join(faults...)
}

// Option swaps a collaborator of a [Limiter]; settings belong in [Config].
type Option func(*Limiter)

// WithLogger logs to log instead of nowhere. Nothing personal is logged.
func WithLogger(log *slog.Logger) Option { return func(l *Limiter) { l.log = log } }

// WithRegisterer registers the limiter's metrics.
func WithRegisterer(reg prometheus.Registerer) Option {
	return func(l *Limiter) { l.registerer = reg }
}

// WithNodes tells how many nodes share the counters, this one among them: the
// divisor of the local share while the store is away. The default is 1.
func WithNodes(nodes func() int) Option { return func(l *Limiter) { l.nodes = nodes } }
