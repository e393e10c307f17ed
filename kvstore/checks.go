package kvstore

import (
	"errors"
	"fmt"
)

// Check is one condition of a node that is ready; it holds when Err is nil.
type Check struct {
	Name string // "connected", "buckets", "clock"
	Err  error
}

// errBucketNotReady: a bucket is there and cannot be used yet.
var errBucketNotReady = errors.New("not ready")

// errNotChecked: joining did not come that far.
var errNotChecked = errors.New("not looked at yet")

// Checks tells how the store stands now:
//
//   - "connected": to NATS;
//   - "buckets": they exist with the configured replicas and have a leader, and
//     an embedded server's own replicas of what lasts are up to date;
//   - "clock": heartbeats are written and read back.
//
// It asks nobody, so it may be called as often as one likes.
func (s *Store) Checks() []Check {
	return []Check{
		{"connected", s.checkConnected()},
		{"buckets", s.checkBuckets()},
		{"clock", s.nodes.health()},
	}
}

// Reachable reports whether the last heartbeats succeeded.
func (s *Store) Reachable() bool {
	return s.checkConnected() == nil && s.nodes.health() == nil
}

func (s *Store) checkConnected() error {
	if l := s.link.Load(); l != nil {
		return connState(l.nc)
	}
	if st := s.step.Load(); st != nil && st.err != nil {
		return fmt.Errorf("%s: %w", st.name, st.err)
	}
	return errNotChecked
}

func (s *Store) checkBuckets() error {
	if err := s.buckets.Load(); err != nil {
		return *err
	}
	return errNotChecked
}
