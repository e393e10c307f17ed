package nvcf

import (
	"context"
	"sync"
	"time"
)

// Bounds of how often the answers are looked through.
const (
	lookOften  = 20 * time.Millisecond
	lookSeldom = 250 * time.Millisecond
)

// warm asks again ahead of time for what is in use, and tells the feed of what
// changed, until ctx ends.
func (s *Source) warm(ctx context.Context) {
	tick := time.NewTicker(min(max(s.cfg.CacheTTL/20, lookOften), lookSeldom))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s.askDue(ctx)
		s.health.settle(min(firstPause, s.cfg.CacheTTL), s.feed)
		if s.changed.Swap(false) {
			s.feed.Changed()
		}
	}
}

// askDue asks for all that is due and in use, MaxInFlight at a time, and
// returns when they are answered.
func (s *Source) askDue(ctx context.Context) {
	var asking sync.WaitGroup
	slots := make(chan struct{}, s.cfg.MaxInFlight)
	defer asking.Wait()
	stale := 0
	for _, e := range s.answers.Values() {
		if e.answer.Load().stale() {
			stale++
		}
		if !s.due(e, time.Now()) {
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		asking.Go(func() {
			<-e.single.run(s.tasks, func(ctx context.Context) { s.ask(ctx, e) })
			<-slots
		})
	}
	s.metrics.stale.Set(float64(stale))
}

// due reports whether to ask again without anybody waiting: for what was used
// in the last half of its life, a fifth of it ahead of its end.
func (s *Source) due(e *entry, now time.Time) bool {
	a := e.answer.Load()
	if a == nil {
		return false
	}
	idle := now.Sub(time.Unix(0, e.used.Load()))
	ahead := s.cfg.CacheTTL / 5
	if a.tries > 0 {
		ahead = 0
	}
	return idle < max(s.cfg.CacheTTL/2, inUse) && !now.Before(a.until.Add(-ahead))
}

// inUse is how long after its last look-up a function counts as being in use
// at least: a limiter remembers what it found for a second.
const inUse = 3 * time.Second
