package nvcf

import (
	"context"
	"sync"
)

// tasks owns the goroutines of a source. Their context ends with it.
type tasks struct {
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

func newTasks() *tasks {
	ctx, cancel := context.WithCancel(context.Background())
	return &tasks{ctx: ctx, cancel: cancel}
}

// spawn reports whether f was started: after close nothing is.
func (t *tasks) spawn(f func(context.Context)) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Go(func() { f(t.ctx) })
	return true
}

// close ends the context and waits for all goroutines, at most until ctx ends.
func (t *tasks) close(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.cancel()
	done := make(chan struct{})
	go func() {
		t.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// single lets one run of a function be under way at a time.
type single struct {
	mu      sync.Mutex
	running chan struct{} // closed when the present run is over; nil without one
}

// run starts f unless it is running, and returns what is closed when it is
// over. f belongs to no caller: it goes on when all of them have gone.
func (s *single) run(t *tasks, f func(context.Context)) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return s.running
	}
	over := make(chan struct{})
	started := t.spawn(func(ctx context.Context) {
		defer func() {
			s.mu.Lock()
			s.running = nil
			s.mu.Unlock()
			close(over)
		}()
		f(ctx)
	})
	if !started {
		close(over)
		return over
	}
	s.running = over
	return over
}
