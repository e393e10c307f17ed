package kvstore

import (
	"context"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of joining. One attempt of each step is bounded; how often it is made
// is not: the process lives on without its store.
const (
	retryFirst = 50 * time.Millisecond
	retryMost  = 500 * time.Millisecond // a node is ready within 2 s of its store
	// Bounds of one attempt, growing from one to the next. A request that
	// reaches a server while leaderships are made up may never be answered, so
	// the first attempts are short; a slow network needs longer ones, the way
	// inside the process does not.
	attemptFirst  = time.Second
	attemptMost   = 5 * time.Second
	attemptWithin = 400 * time.Millisecond
	verifyEvery   = 5 * time.Second // between two looks when all is well
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
	defer s.sleepAlone()
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
		{"buckets", s.inTime(s.openBuckets)},
		{"heartbeat", s.firstHeartbeat},
		{"growth", s.grow},
		{"secret", s.findSecret},
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
func (s *Store) inTime(do func(context.Context) error) func(context.Context) error {
	bound, most := attemptFirst, attemptMost
	if s.cfg.Embedded() {
		bound, most = attemptWithin, attemptFirst
	}
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, bound)
		defer cancel()
		bound = min(bound+bound/4, most)
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

func (s *Store) findSecret(ctx context.Context) error {
	settled := func() bool { return true }
	if s.cfg.Cluster.Enabled() {
		settled = func() bool { return s.nodes.gathered(ctx, len(s.cfg.Cluster.Routes)) }
	}
	return s.secret.find(ctx, s.link.Load().js, settled, s.log)
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
