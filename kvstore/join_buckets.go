package kvstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/headgate-io/headgate/ratelimit"
)

// openBuckets makes or repairs the buckets and checks that they can be used,
// and that this node's own replicas of what lasts are up to date.
func (s *Store) openBuckets(ctx context.Context) error {
	return s.eachBucket(ctx, func(bucket string, info *jetstream.StreamInfo) error {
		if err := s.usable(bucket, info); err != nil {
			return err
		}
		if lasting(bucket) && s.server != nil && holds(info, s.cfg.NodeName) && !s.server.current(streamPrefix+bucket) {
			return fmt.Errorf("bucket %s is not up to date on this server: %w", bucket, errBucketNotReady)
		}
		return nil
	})
}

// eachBucket opens all buckets at once, checks each, and remembers what came of
// it.
func (s *Store) eachBucket(ctx context.Context, check func(string, *jetstream.StreamInfo) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, b := range bucketNames() {
		g.Go(func() error {
			info, err := openBucket(ctx, s.link.Load().js, b, s.cfg.EffectiveReplicas())
			if err != nil {
				return err
			}
			return check(b, info)
		})
	}
	err := g.Wait()
	s.buckets.Store(&err)
	s.refuse(err)
	return err
}

// usable checks that the bucket has its replicas and a leader.
func (s *Store) usable(bucket string, info *jetstream.StreamInfo) error {
	want := s.cfg.EffectiveReplicas()
	switch {
	case info.Config.Replicas < want:
		return fmt.Errorf("bucket %s has %d replicas, wants %d: %w", bucket, info.Config.Replicas, want, errBucketNotReady)
	case want > 1 && (info.Cluster == nil || info.Cluster.Leader == ""):
		return fmt.Errorf("bucket %s has no leader: %w", bucket, errBucketNotReady)
	}
	return nil
}

// holds reports whether the server of that name has a replica.
func holds(info *jetstream.StreamInfo, name string) bool {
	if info.Cluster == nil {
		return true
	}
	for _, r := range info.Cluster.Replicas {
		if r.Name == name {
			return true
		}
	}
	return info.Cluster.Leader == name
}

// refuse makes exchanges fail while the buckets belong to a newer release.
func (s *Store) refuse(err error) {
	if !errors.Is(err, ratelimit.ErrNewerFormat) {
		if err == nil {
			s.refused.Store(nil)
		}
		return
	}
	away := fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, err)
	s.refused.Store(&away)
}

// verify looks at the buckets again after a heartbeat: after one that succeeded
// now and then, and at once when something was wrong with the buckets; while
// heartbeats fail now and then too, for the buckets may be gone.
func (s *Store) verify(ctx context.Context, beat error) {
	was := s.buckets.Load()
	lately := time.Since(s.verified) < verifyEvery
	if beat == nil && *was == nil && lately {
		return
	}
	if beat != nil && (lately || s.nodes.health() == nil) {
		return
	}
	s.verified = time.Now()
	look, cancel := context.WithTimeout(ctx, attemptFirst)
	defer cancel()
	// A replica that lags behind here for a moment is no reason to be unready.
	err := s.eachBucket(look, s.usable)
	if err != nil && *was == nil && ctx.Err() == nil {
		s.log.Warn("buckets cannot be used", "error", err)
	}
}
