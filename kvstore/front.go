package kvstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/headgate-io/headgate/ratelimit"
)

// front is what answers exchanges once the store is joined.
type front struct {
	settler *settler
	owners  *owners
}

// openFront begins to answer exchanges, and to take those of other nodes.
func (s *Store) openFront(ctx context.Context) error {
	l := s.link.Load()
	cfg := settlerConfig{Attempt: s.cfg.AttemptTimeout, Node: s.cfg.NodeName}
	if s.cfg.Embedded() { // the nodes' wall clocks are the servers'
		cfg.Apart = s.nodes.members.wallsApart
	}
	settler := newSettler(l.js, streamPrefix+CountersBucket, s.clock, cfg, s.metrics)
	f := &front{
		settler: settler,
		owners:  newOwners(l.nc, settler, s.nodes.members, s.cfg.NodeName, ownerConfig{}, s.metrics),
	}
	if err := f.owners.Start(ctx); err != nil {
		return err
	}
	s.front.Store(f)
	s.nodes.setOwner(true)
	return nil
}

// Exchange goes to the counter's owner, or straight to the store.
func (f *front) Exchange(ctx context.Context, x ratelimit.Exchange) (ratelimit.Grant, error) {
	return f.owners.Exchange(ctx, x)
}

// stop gives the counters up, then waits for what is in flight.
func (f *front) stop(ctx context.Context) error {
	var errs []error
	if err := f.owners.Stop(ctx); err != nil {
		errs = append(errs, fmt.Errorf("kvstore: owners: %w", err))
	}
	if err := f.settler.Stop(ctx); err != nil {
		errs = append(errs, fmt.Errorf("kvstore: settler: %w", err))
	}
	return errors.Join(errs...)
}
