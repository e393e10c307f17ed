package kvstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/headgate-io/headgate/ratelimit"
)

// Bounds of joining. One attempt of each step is bounded; how often it is made
// is not: the process lives on without its store.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 500 * time.Millisecond // a node is ready within 2 s of its store
	// Bounds of one attempt, growing from one to the next. A request that
	// reaches a server while leaderships are made up may never be answered, so
	// the first attempts are short; a slow network needs longer ones.
	attemptFirst = time.Second
	attemptMost  = 5 * time.Second
	verifyEvery  = 5 * time.Second // between two looks when all is well
)

// joinStep is what joining waits for.
type joinStep struct {
	name string
	err  error // of the last attempt; nil while the first runs
}

// prepare does what must not wait: it claims the data directory, reads the
// files that the configuration names, and returns how to connect.
func (s *Store) prepare() (connect func(context.Context) (*nats.Conn, error), err error) {
	hooks := connHooks{up: s.nodes.hurry}
	if !s.cfg.Embedded() {
		opts, err := externalOptions(s.cfg, s.log, hooks)
		if err != nil {
			return nil, err
		}
		return func(context.Context) (*nats.Conn, error) { return nats.Connect(s.cfg.URL, opts...) }, nil
	}
	shape := shapeAlone
	if s.cfg.Cluster.Enabled() {
		shape = shapeMember
	}
	if s.dir, err = openDataDir(s.cfg.DataDir, s.cfg.NodeName, shape); err != nil {
		return nil, err
	}
	first, err := newEmbedded(s.cfg, s.dir.storeDir(), s.log)
	if err != nil {
		s.dir.close()
		return nil, err
	}
	return func(ctx context.Context) (*nats.Conn, error) {
		if err := s.boot(ctx, first); err != nil {
			return nil, err
		}
		return connectEmbedded(s.cfg, s.server, s.log, hooks)
	}, nil
}

// run joins, then sends heartbeats until ctx ends.
func (s *Store) run(ctx context.Context, connect func(context.Context) (*nats.Conn, error)) {
	began := time.Now()
	if err := s.join(ctx, connect); err != nil {
		return // ctx ended
	}
	s.log.Info("joined the store", "node", s.cfg.NodeName, "nodes", s.Live(), "after", time.Since(began))
	close(s.joined)
	s.nodes.run(ctx, func(err error) { s.verify(ctx, err) })
}

// join takes one step after the other, each as often as it takes. The error is
// that of ctx.
func (s *Store) join(ctx context.Context, connect func(context.Context) (*nats.Conn, error)) error {
	for _, st := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"connect", func(ctx context.Context) error { return s.connect(ctx, connect) }},
		{"buckets", inTime(s.openBuckets)},
		{"growth", s.grow},
		{"secret", inTime(s.findSecret)},
		{"heartbeat", s.firstHeartbeat},
		{"exchanges", s.openFront},
	} {
		s.step.Store(&joinStep{name: st.name})
		if err := s.persist(ctx, st.name, st.do); err != nil {
			return err
		}
	}
	s.step.Store(nil)
	return nil
}

// persist repeats a step until it succeeds or ctx ends.
func (s *Store) persist(ctx context.Context, name string, do func(context.Context) error) error {
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = retryFirst, retryMost
	said := ""
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, do(ctx) },
		backoff.WithBackOff(pause), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, _ time.Duration) {
			s.step.Store(&joinStep{name: name, err: err})
			if text := err.Error(); text != said { // once for each reason
				said = text
				s.log.Warn("joining the store goes on", "step", name, "error", err)
			}
		}))
	return err
}

// inTime bounds each attempt of do, the first ones shorter than later ones.
func inTime(do func(context.Context) error) func(context.Context) error {
	bound := attemptFirst
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, bound)
		defer cancel()
		bound = min(2*bound, attemptMost)
		return do(ctx)
	}
}

// connect makes the connection if there is none and checks that it is up.
func (s *Store) connect(ctx context.Context, connect func(context.Context) (*nats.Conn, error)) error {
	if s.link.Load() == nil {
		nc, err := connect(ctx)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		js, err := jetstream.New(nc)
		if err != nil {
			nc.Close()
			return fmt.Errorf("jetstream: %w", err)
		}
		s.link.Store(&link{nc: nc, js: js})
	}
	return connState(s.link.Load().nc)
}

// connState is nil when the connection is up.
func connState(nc *nats.Conn) error {
	if nc.IsConnected() {
		return nil
	}
	if err := nc.LastError(); err != nil {
		return fmt.Errorf("connection is %s: %w", nc.Status(), err)
	}
	return fmt.Errorf("connection is %s: %w", nc.Status(), nats.ErrDisconnected)
}

// openBuckets makes or repairs the buckets and checks that they can be used.
func (s *Store) openBuckets(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, b := range bucketNames() {
		g.Go(func() error {
			info, err := openBucket(ctx, s.link.Load().js, b, s.cfg.EffectiveReplicas())
			if err != nil {
				return err
			}
			return s.usable(b, info)
		})
	}
	err := g.Wait()
	s.buckets.Store(&err)
	s.refuse(err)
	return err
}

// usable checks that the bucket has its replicas and a leader, and that this
// node's own replica is up to date.
func (s *Store) usable(bucket string, info *jetstream.StreamInfo) error {
	want := s.cfg.EffectiveReplicas()
	switch {
	case info.Config.Replicas < want:
		return fmt.Errorf("bucket %s has %d replicas, wants %d: %w", bucket, info.Config.Replicas, want, errBucketNotReady)
	case want > 1 && (info.Cluster == nil || info.Cluster.Leader == ""):
		return fmt.Errorf("bucket %s has no leader: %w", bucket, errBucketNotReady)
	case s.server != nil && holds(info, s.cfg.NodeName) && !s.server.current(streamPrefix+bucket):
		return fmt.Errorf("bucket %s is not up to date on this server: %w", bucket, errBucketNotReady)
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

// verify looks at the buckets again after a heartbeat: now and then when all is
// well, each time when something was wrong with them or heartbeats fail (one
// lost heartbeat aside).
func (s *Store) verify(ctx context.Context, beat error) {
	was := s.buckets.Load()
	if beat != nil && s.nodes.health() == nil {
		return
	}
	if beat == nil && *was == nil && time.Since(s.verified) < verifyEvery {
		return
	}
	s.verified = time.Now()
	look, cancel := context.WithTimeout(ctx, attemptFirst)
	defer cancel()
	err := s.openBuckets(look)
	if err != nil && *was == nil && ctx.Err() == nil {
		s.log.Warn("buckets", "error", err)
	}
}

func (s *Store) findSecret(ctx context.Context) error {
	return s.secret.find(ctx, s.link.Load().js, s.log)
}

func (s *Store) firstHeartbeat(ctx context.Context) error {
	l := s.link.Load()
	if s.nodes.sub == nil {
		if err := s.nodes.open(ctx, l.nc, l.js); err != nil {
			return err
		}
	}
	return s.nodes.join(ctx)
}
