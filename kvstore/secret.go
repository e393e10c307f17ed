package kvstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
)

// secretKey is where the settings bucket keeps the key of the hash.
const (
	secretKey   = "hash-secret"
	secretBytes = 32
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

// find takes the secret from the store, or makes it there. Only one goroutine
// may call it.
func (s *secret) find(ctx context.Context, js jetstream.JetStream, log *slog.Logger) error {
	select {
	case <-s.ready:
		return nil
	default:
	}
	kv, err := js.KeyValue(ctx, settingsBucket)
	if err != nil {
		return fmt.Errorf("hash secret: %w", err)
	}
	fresh := make([]byte, secretBytes)
	_, _ = rand.Read(fresh) // never fails, see its documentation
	_, err = kv.Create(ctx, secretKey, fresh)
	switch {
	case err == nil:
		s.value = fresh
	case errors.Is(err, jetstream.ErrKeyExists):
		e, err := kv.Get(ctx, secretKey)
		if err != nil {
			return fmt.Errorf("hash secret: %w", err)
		}
		s.value = e.Value()
	default:
		return fmt.Errorf("hash secret: %w", err)
	}
	close(s.ready)
	log.Info("subjects are hashed with a secret kept in the store; one in the configuration is better")
	return nil
}
