package kvstore

import (
	"context"
	"fmt"

	"github.com/headgate-io/headgate/ratelimit"
)

// front is what answers exchanges once the store is joined.
type front struct {
	settler *settler
}

// openFront begins to answer exchanges.
func (s *Store) openFront(context.Context) error {
	l := s.link.Load()
	f := &front{settler: newSettler(l.js, streamPrefix+CountersBucket, s.clock, settlerConfig{
		Attempt: s.cfg.AttemptTimeout,
		Node:    s.cfg.NodeName,
	}, s.metrics)}
	s.front.Store(f)
	return nil
}

// Exchange settles x with the store.
func (f *front) Exchange(ctx context.Context, x ratelimit.Exchange) (ratelimit.Grant, error) {
	return f.settler.Exchange(ctx, x)
}

// stop waits for what is in flight.
func (f *front) stop(ctx context.Context) error {
	if err := f.settler.Stop(ctx); err != nil {
		return fmt.Errorf("kvstore: settler: %w", err)
	}
	return nil
}
