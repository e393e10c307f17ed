package kvstore

import (
	"context"
	"fmt"
	"time"
)

// boot starts the embedded server and waits until it is healthy. first is used
// once; after a failure the server is made anew.
func (s *Store) boot(ctx context.Context, first *embedded) error {
	e := first
	return s.persist(ctx, "server", func(ctx context.Context) error {
		if e == nil {
			var err error
			if e, err = newEmbedded(s.cfg, s.dir.storeDir(), s.log); err != nil {
				return err
			}
		}
		s.setServer(e)
		err := e.run(ctx, func(err error) { s.step.Store(&joinStep{name: "server", err: err}) })
		if err == nil {
			return nil
		}
		s.setServer(nil)
		e.stop()
		e = nil
		return fmt.Errorf("embedded server: %w", err)
	})
}

func (s *Store) setServer(e *embedded) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.server = e
}

// Bounds of the last steps of Stop, inside the context it gets.
const leaveTimeout = 500 * time.Millisecond // the heartbeat's removal
