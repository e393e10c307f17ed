package nvcf

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// Source asks the policy API, as the package comment says. It implements
// [policy.Asking]. Use [New]. All methods may be called concurrently.
type Source struct {
	cfg       Config
	algorithm counter.Algorithm
	feed      policy.Feed
	log       *slog.Logger
	metrics   *metrics
	answers   *lru.Cache[function, *entry]
	slots     chan struct{} // one for each question under way
	tasks     *tasks
	tokens    tokens

	client  atomic.Pointer[client] // nil before Start
	changed atomic.Bool            // an answer changed since the feed was told

	health health
}

var _ policy.Asking = (*Source)(nil)

// Option swaps a collaborator of a [Source]; settings belong in [Config].
type Option func(*Source)

// WithLogger logs to log. Without it nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(s *Source) { s.log = log } }

// WithRegisterer registers the metrics on reg. Without it they stay private.
func WithRegisterer(reg prometheus.Registerer) Option {
	return func(s *Source) { s.metrics = newMetrics(reg) }
}

// New makes a source for cfg.Address, which must not be empty. It does no I/O.
// The error is from [Config.Validate].
func New(cfg Config, opts ...Option) (*Source, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Address == "" {
		return nil, &ConfigError{"Address", cfg.Address, "is required"}
	}
	algorithm, err := counter.ParseAlgorithm(cfg.Algorithm)
	if err != nil {
		return nil, err
	}
	s := &Source{
		cfg: cfg, algorithm: algorithm, feed: policy.Discard, log: slog.New(slog.DiscardHandler),
		slots: make(chan struct{}, cfg.MaxInFlight), tasks: newTasks(),
	}
	s.tokens = newTokens(cfg, s.tasks)
	if s.answers, err = lru.NewWithEvict(cfg.MaxFunctions, s.forgotten); err != nil {
		return nil, fmt.Errorf("policy/nvcf: %w", err)
	}
	for _, opt := range opts {
		opt(s)
	}
	if s.metrics == nil {
		s.metrics = newMetrics(nil)
	}
	return s, nil
}

// Name implements [policy.Source].
func (s *Source) Name() string { return policy.NVCF }

// Attach implements [policy.Source].
func (s *Source) Attach(feed policy.Feed) { s.feed = feed }

// Start makes the source ready to ask. It waits for nothing: an API that is
// away is a fault that passes. The error is about the TLS settings.
func (s *Source) Start(context.Context) error {
	c, err := dial(s.cfg)
	if err != nil {
		return fmt.Errorf("policy/nvcf: %w", err)
	}
	if !s.client.CompareAndSwap(nil, c) {
		return fmt.Errorf("policy/nvcf: started before: %w", c.close())
	}
	if _, none := s.tokens.(noTokens); !none && !s.cfg.TLS.Enabled && !c.local {
		s.log.Warn("bearer tokens travel to the policy API without TLS")
	}
	s.tasks.spawn(s.warm)
	return nil
}

// Stop ends all questions and waits for them, at most until ctx ends. What is
// known stays in force. It may be called again, and before Start.
func (s *Source) Stop(ctx context.Context) error {
	err := s.tasks.close(ctx)
	if err != nil {
		err = fmt.Errorf("policy/nvcf: stop: %w", err)
	}
	if c := s.client.Load(); c != nil {
		_ = c.close() // it is closed already when Stop was called before
	}
	return err
}

// Ask implements [policy.Asking].
func (s *Source) Ask(ctx context.Context, id, version string) (p *ratelimit.Policy, degraded bool) {
	e := s.entry(function{id, version})
	now := time.Now()
	e.used.Store(now.UnixNano())
	switch a := e.answer.Load(); {
	case a != nil && now.Before(a.until):
		return s.give(a)
	case a != nil && a.tries > 0:
		s.askBehind(e) // nobody waits for an API that failed
		return s.give(a)
	}
	select {
	case <-e.single.run(s.tasks, func(ctx context.Context) {
		// The question before this one may have been answered since.
		if a := e.answer.Load(); a == nil || !time.Now().Before(a.until) {
			s.ask(ctx, e)
		}
	}):
	case <-ctx.Done():
	}
	return s.give(e.answer.Load())
}

// entry finds or makes the memory of a function.
func (s *Source) entry(key function) *entry {
	if e, ok := s.answers.Get(key); ok {
		return e
	}
	fresh := &entry{key: key}
	if earlier, ok, _ := s.answers.PeekOrAdd(key, fresh); ok {
		return earlier
	}
	return fresh
}

// give counts the look-ups that an API which never answered leaves unlimited.
func (s *Source) give(a *answer) (*ratelimit.Policy, bool) {
	if a == nil || a.unknown {
		s.metrics.unlimited.Inc()
		return nil, true
	}
	return a.policy, false
}

// askBehind asks without anybody waiting, if a slot is free; else the warming
// will do it.
func (s *Source) askBehind(e *entry) {
	if len(s.slots) < cap(s.slots) {
		e.single.run(s.tasks, func(ctx context.Context) { s.ask(ctx, e) })
	}
}

// forgotten is called for what the cache drops.
func (s *Source) forgotten(key function, e *entry) {
	e.dropped.Store(true)
	s.health.forget(key)
}
