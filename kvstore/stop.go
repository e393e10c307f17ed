package kvstore

import (
	"context"
	"errors"
	"fmt"
)

// Stop gives this node's counters up, waits for the exchanges in flight, takes
// its heartbeat out of the store, drains the connection and lets the embedded
// server leave, in this order. It is bounded by ctx and may be called again;
// only the first call does anything.
func (s *Store) Stop(ctx context.Context) error {
	s.mu.Lock()
	first := !s.stopped
	s.stopped = true
	cancel, done := s.cancel, s.done
	s.mu.Unlock()
	if !first || done == nil {
		return nil
	}
	s.nodes.setOwner(false)
	var errs []error
	if f := s.front.Load(); f != nil {
		errs = append(errs, f.stop(ctx))
	}
	cancel()
	select {
	case <-done:
	case <-ctx.Done():
		// The server recovers its store and cannot be interrupted.
		return errors.Join(append(errs, fmt.Errorf("kvstore: stop: %w", ctx.Err()))...)
	}
	if l := s.link.Load(); l != nil {
		errs = append(errs, s.leave(ctx, l))
	}
	errs = append(errs, s.stopServer(ctx))
	if s.dir != nil {
		s.dir.close()
	}
	return errors.Join(errs...)
}

// leave says good-bye and closes the connection.
func (s *Store) leave(ctx context.Context, l *link) error {
	if l.nc.IsConnected() {
		s.nodes.leave(ctx)
	}
	return closeConn(ctx, l.nc)
}

// stopServer lets the embedded server leave.
func (s *Store) stopServer(ctx context.Context) error {
	s.mu.Lock()
	e := s.server
	s.server = nil
	s.mu.Unlock()
	if e == nil {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		e.stop()
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("kvstore: embedded server still stopping: %w", ctx.Err())
	}
}
