package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
)

// Membership is a store that is joined some time after it was started, and that
// then knows what subjects are hashed with.
type Membership interface {
	// Joined is closed once the store can be used.
	Joined() <-chan struct{}
	// KeySecret is for [Keyring.SetSecret]. It is called after Joined.
	KeySecret(ctx context.Context) ([]byte, error)
}

// Companion has to be there before a limiter leases anything, and until it
// leases nothing any more. Stop is idempotent, and may come before Start.
type Companion interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// errNotJoined: the limiter waits for its store.
var errNotJoined = errors.New("waiting for the store")

// Joiner starts a limiter once its store is joined. It waits for that as long
// as it takes, in the background, so that no start waits for a store. Use
// [NewJoiner].
type Joiner struct {
	store      Membership
	keys       *Keyring
	limiter    *Limiter
	companions []Companion
	log        *slog.Logger

	cancel context.CancelFunc
	work   sync.WaitGroup
	state  atomic.Pointer[error] // why it has not joined; nil once it has
}

// NewJoiner returns a Joiner that is to be started. A nil log logs nowhere.
func NewJoiner(store Membership, keys *Keyring, limiter *Limiter, log *slog.Logger, companions ...Companion) *Joiner {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	j := &Joiner{store: store, keys: keys, limiter: limiter, companions: companions, log: log, cancel: func() {}}
	j.state.Store(&errNotJoined)
	return j
}

// Start begins to wait for the store. It returns at once, and ctx ends nothing.
func (j *Joiner) Start(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	j.cancel = cancel
	j.work.Go(func() { j.run(ctx) })
	return nil
}

// GiveUp ends the waiting: what is not started yet never will be. It may be
// called again, and before Start.
func (j *Joiner) GiveUp() {
	j.cancel()
	j.work.Wait()
}

// Stop gives up and stops the companions. It is for after the limiter was
// stopped, and may be called again.
func (j *Joiner) Stop(ctx context.Context) error {
	j.GiveUp()
	var errs []error
	for _, c := range j.companions {
		errs = append(errs, c.Stop(ctx))
	}
	return errors.Join(errs...)
}

// Check says why the limiter is not started yet; nil once it is.
func (j *Joiner) Check(context.Context) error {
	if err := j.state.Load(); err != nil {
		return *err
	}
	return nil
}

func (j *Joiner) run(ctx context.Context) {
	err := j.join(ctx)
	switch {
	case err == nil:
		j.state.Store(nil)
		j.log.Debug("limiter started")
	case ctx.Err() == nil:
		j.state.Store(&err)
		j.log.Error("cannot join", "error", err)
	}
}

func (j *Joiner) join(ctx context.Context) error {
	select {
	case <-j.store.Joined():
	case <-ctx.Done():
		return ctx.Err()
	}
	secret, err := j.store.KeySecret(ctx)
	if err != nil {
		return fmt.Errorf("secret of the hash: %w", err)
	}
	j.keys.SetSecret(secret)
	for _, c := range j.companions {
		if err := c.Start(ctx); err != nil {
			return fmt.Errorf("before the limiter: %w", err)
		}
	}
	if err := j.limiter.Start(ctx); err != nil {
		return fmt.Errorf("limiter: %w", err)
	}
	return nil
}
