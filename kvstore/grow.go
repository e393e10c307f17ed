package kvstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/headgate-io/headgate/ratelimit"
)

// Bounds of copying what a server alone kept into the cluster it grew into.
const (
	growInFlight = 64                     // records being written
	growBatch    = 500                    // records read at once
	growWait     = 500 * time.Millisecond // for one such batch
	growAttempt  = 2 * time.Second        // one record
	growTries    = 20                     // of one record that others write too
)

// wakeAlone starts a server on what this node kept while it was alone, if it
// was. That is done before the cluster forms, for the secret must be copied
// before another node makes a new one.
func (s *Store) wakeAlone(ctx context.Context) error {
	dir, ok := s.dir.aloneDir()
	if !ok {
		return nil
	}
	cfg := s.cfg
	cfg.Cluster = Cluster{}
	return s.persist(ctx, "growth", func(ctx context.Context) error {
		e, err := newEmbedded(cfg, dir, s.log)
		if err != nil {
			return err
		}
		if err := e.run(ctx, func(error) {}); err != nil {
			e.stop()
			return fmt.Errorf("server alone: %w", err)
		}
		s.alone = e
		s.nodes.grows.Store(true)
		return nil
	})
}

// sleepAlone stops that server.
func (s *Store) sleepAlone() {
	if s.alone != nil {
		s.alone.stop()
		s.alone = nil
	}
}

// grow copies what this node kept while it was alone into the cluster: the
// secret, the policies, the counters. What the cluster has of its own stands,
// except for counters: there both were spent, so their sum is. It does nothing
// when there is nothing to copy. After a failure it is made again from the
// beginning; what was copied is then charged once more at most, never
// forgotten.
func (s *Store) grow(ctx context.Context) error {
	if s.alone == nil {
		return nil
	}
	began := time.Now()
	n, err := s.copyAll(ctx)
	if err != nil {
		return fmt.Errorf("copy from the server alone: %w", err)
	}
	s.sleepAlone()
	dir, _ := s.dir.aloneDir()
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("copy from the server alone: %w", err)
	}
	s.nodes.grows.Store(false)
	s.log.Info("copied what the node kept while it was alone", "records", n, "took", time.Since(began))
	return nil
}

func (s *Store) copyAll(ctx context.Context) (copied int, err error) {
	nc, err := connectEmbedded(s.cfg, s.alone, s.log, connHooks{up: func() {}})
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return 0, err
	}
	for _, bucket := range []string{settingsBucket, PoliciesBucket, CountersBucket} {
		n, err := s.copyBucket(ctx, js, bucket)
		if err != nil {
			return copied, fmt.Errorf("bucket %s: %w", bucket, err)
		}
		copied += n
	}
	return copied, nil
}

// copyBucket copies the last record of each key.
func (s *Store) copyBucket(ctx context.Context, from jetstream.JetStream, bucket string) (copied int, err error) {
	info, err := bucketInfo(ctx, from, bucket)
	if errors.Is(err, jetstream.ErrStreamNotFound) || (err == nil && info.State.Msgs == 0) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	c, err := from.OrderedConsumer(ctx, streamPrefix+bucket, jetstream.OrderedConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	})
	if err != nil {
		return 0, err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(growInFlight)
	for left := info.State.Msgs; left > 0 && ctx.Err() == nil; {
		batch, err := c.Fetch(int(min(left, growBatch)), jetstream.FetchMaxWait(growWait))
		if err != nil {
			return copied, errors.Join(err, g.Wait())
		}
		var n int
		n, left, err = s.copyBatch(ctx, batch, bucket, g)
		copied += n
		if err != nil {
			return copied, errors.Join(err, g.Wait())
		}
	}
	return copied, g.Wait()
}

// copyBatch lets g write the records of a batch; left is how many there are
// after those.
func (s *Store) copyBatch(
	ctx context.Context, batch jetstream.MessageBatch, bucket string, g *errgroup.Group,
) (n int, left uint64, err error) {
	write := s.copyRecord
	if bucket == CountersBucket {
		write = s.copyCounter
	}
	for m := range batch.Messages() {
		meta, err := m.Metadata()
		if err != nil {
			return n, left, err
		}
		n, left = n+1, meta.NumPending
		if m.Headers().Get(headerKVOp) != "" {
			continue // it was deleted
		}
		age := time.Since(meta.Timestamp)
		g.Go(func() error { return write(ctx, m, age) })
	}
	// None at all: what was left has expired.
	return n, left, batch.Error()
}

// copyRecord writes a record unless the cluster has one of that key.
func (s *Store) copyRecord(ctx context.Context, m jetstream.Msg, _ time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, growAttempt)
	defer cancel()
	copied := &nats.Msg{Subject: m.Subject(), Data: m.Data()}
	_, err := s.link.Load().js.PublishMsg(ctx, copied, jetstream.WithExpectLastSequencePerSubject(0))
	if errors.Is(writeFault(err), errConflict) {
		return nil
	}
	return err
}

// copyCounter writes a counter with what is left of its time to live, added to
// what the cluster spent of it meanwhile.
func (s *Store) copyCounter(ctx context.Context, m jetstream.Msg, age time.Duration) error {
	left := recordTTL(m.Headers()) - age
	if left < time.Second {
		return nil // it expires now
	}
	old, err := decodeRecord(m.Data())
	if err != nil {
		return err
	}
	to := newCountersBucket(s.link.Load().js, streamPrefix+CountersBucket)
	key := ratelimit.Key(strings.TrimPrefix(m.Subject(), subjectPrefix(CountersBucket)))
	data, expected := m.Data(), uint64(0)
	for range growTries {
		err = attempt(ctx, growAttempt, func(ctx context.Context) error {
			_, err := to.write(ctx, key, data, left, expected)
			return err
		})
		if !errors.Is(err, errConflict) {
			return err
		}
		err = attempt(ctx, growAttempt, func(ctx context.Context) error {
			there, err := to.read(ctx, key)
			if err != nil {
				return err
			}
			expected = there.sequence
			left = max(left, recordTTL(there.header))
			data, err = addRecords(old, there.data)
			return err
		})
		if err != nil {
			return err
		}
	}
	return err
}

func attempt(ctx context.Context, bound time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	return do(ctx)
}

// recordTTL is the time to live that a record was written with.
func recordTTL(h nats.Header) time.Duration {
	seconds, err := strconv.Atoi(h.Get(headerTTL))
	if err != nil {
		return 0 // none is ever written without
	}
	return time.Duration(seconds) * time.Second
}
