package kvstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
)

// secretKey is where the settings bucket keeps the key of the hash.
const (
	secretKey   = "hash-secret"
	secretBytes = 32
	// secretGrace bounds the wait of a member for the others before it makes a
	// secret: one of them may bring that of the time when it was alone.
	secretGrace = 3 * time.Second
	secretPoll  = 50 * time.Millisecond
)

// secret is the key of the hash of subjects. All nodes must hash alike, so it
// is configured, or made by the first node and kept in the store.
type secret struct {
	configured bool
	ready      chan struct{} // closed once value is set
	value      []byte
}

func newSecret(configured string) *secret {
	s := &secret{configured: configured != "", ready: make(chan struct{})}
	if s.configured {
		s.value = []byte(configured)
		close(s.ready)
	}
	return s
}

// wait returns the secret once it is known.
func (s *secret) wait(ctx context.Context) ([]byte, error) {
	select {
	case <-s.ready:
		return s.value, nil
	default:
	}
	select {
	case <-s.ready:
		return s.value, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: hash secret is not known yet: %w", ratelimit.ErrUnavailable, ctx.Err())
	}
}

// find takes the secret from the store, or makes it there once it is
// settled that nobody else brings one, or after a while. Only one goroutine may call it.
func (s *secret) find(ctx context.Context, js jetstream.JetStream, settled func() bool, log *slog.Logger) error {
	select {
	case <-s.ready:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, secretGrace+attemptMost)
	defer cancel()
	kv, err := js.KeyValue(ctx, settingsBucket)
	if err != nil {
		return fmt.Errorf("hash secret: %w", err)
	}
	for began := time.Now(); ; {
		err := s.take(ctx, kv)
		if err == nil {
			break
		}
		if !errors.Is(err, jetstream.ErrKeyNotFound) {
			return fmt.Errorf("hash secret: %w", err)
		}
		if settled() || time.Since(began) > secretGrace {
			if err := createSecret(ctx, kv); err != nil {
				return fmt.Errorf("hash secret: %w", err)
			}
			continue
		}
		if err := pause(ctx, secretPoll); err != nil {
			return fmt.Errorf("hash secret: %w", err)
		}
	}
	log.Info("subjects are hashed with a secret kept in the store; one in the configuration is better")
	return nil
}

// createSecret puts a new secret into the store. Another node may be faster;
// then it is that one's which counts.
func createSecret(ctx context.Context, kv jetstream.KeyValue) error {
	fresh := make([]byte, secretBytes)
	_, _ = rand.Read(fresh) // never fails, see its documentation
	if _, err := kv.Create(ctx, secretKey, fresh); err != nil && !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	return nil
}

// take reads the secret from the store.
func (s *secret) take(ctx context.Context, kv jetstream.KeyValue) error {
	e, err := kv.Get(ctx, secretKey)
	if err != nil {
		return err
	}
	s.value = e.Value()
	close(s.ready)
	return nil
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
