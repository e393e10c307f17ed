package kvstore

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// boot starts the embedded server and waits until it is healthy. first is used
// once; after a failure the server is made anew.
func (s *Store) boot(ctx context.Context, first *embedded) error {
	if err := s.wakeAlone(ctx); err != nil {
		return err
	}
	e, elections := first, 1
	return s.persist(ctx, "server", func(ctx context.Context) error {
		if e == nil {
			var err error
			if e, err = newEmbedded(s.cfg, s.dir.storeDir(), s.log); err != nil {
				return err
			}
		}
		if elections >= firstElections {
			e.patient = true
		}
		s.setServer(e)
		err := e.run(ctx, func(err error) { s.step.Store(&joinStep{name: "server", err: err}) })
		if err == nil {
			return nil
		}
		s.setServer(nil)
		e.stop()
		e = nil
		if errors.Is(err, errNotElected) {
			elections++
			err = errors.Join(err, s.forgetElection())
		}
		return fmt.Errorf("embedded server: %w", err)
	})
}

// forgetElection removes the votes of a first election, and there is nothing
// else: this server's store was empty when it started, a moment ago, and its
// cluster never had a leader since.
func (s *Store) forgetElection() error {
	if err := os.RemoveAll(s.dir.storeDir()); err != nil {
		return fmt.Errorf("forget the first election: %w", err)
	}
	return nil
}

func (s *Store) setServer(e *embedded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = e
}
