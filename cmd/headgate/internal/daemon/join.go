package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"go.uber.org/fx"

	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/ratelimit"
)

// errNotJoined: the node waits for its store.
var errNotJoined = errors.New("waiting for the store")

// joiner starts what needs the store once the store is there. It waits for it
// as long as it takes, behind the start hooks.
type joiner struct {
	store   *kvstore.Store
	keys    *ratelimit.Keyring
	limiter *ratelimit.Limiter
	// operator is how other nodes end this one's leases.
	operator *kvstore.Operator
	log      *slog.Logger

	cancel context.CancelFunc
	work   sync.WaitGroup
	state  atomic.Pointer[error] // why it has not joined; nil once it has
}

func newJoiner(
	store *kvstore.Store, keys *ratelimit.Keyring, limiter *ratelimit.Limiter, o *kvstore.Operator, log *slog.Logger,
) *joiner {
	j := &joiner{store: store, keys: keys, limiter: limiter, operator: o, log: log, cancel: func() {}}
	j.state.Store(&errNotJoined)
	return j
}

func hookJoiner(lc fx.Lifecycle, j *joiner) { lc.Append(fx.StartStopHook(j.start, j.leave)) }

func (j *joiner) start() {
	ctx, cancel := context.WithCancel(context.Background())
	j.cancel = cancel
	j.work.Go(func() { j.run(ctx) })
}

// stop gives up joining and waits for it. It is idempotent.
func (j *joiner) stop() {
	j.cancel()
	j.work.Wait()
}

func (j *joiner) check(context.Context) error {
	if err := j.state.Load(); err != nil {
		return *err
	}
	return nil
}

func (j *joiner) run(ctx context.Context) {
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

func (j *joiner) join(ctx context.Context) error {
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
	// Others must be able to end this node's leases before it has any.
	if err := j.operator.Start(ctx); err != nil {
		return fmt.Errorf("operator: %w", err)
	}
	if err := j.limiter.Start(ctx); err != nil {
		return fmt.Errorf("limiter: %w", err)
	}
	return nil
}

// leave answers other nodes no longer. It is for when nothing is leased any
// more, and idempotent.
func (j *joiner) leave(ctx context.Context) error {
	j.stop()
	return j.operator.Stop(ctx)
}
