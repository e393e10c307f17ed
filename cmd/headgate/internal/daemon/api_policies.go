package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/ratelimit"
)

// policyStore is the store's policies as the admin API wants them.
type policyStore struct{ bucket *kvstore.Policies }

func (s policyStore) Get(ctx context.Context, function, version string) (*ratelimit.Policy, error) {
	p, err := s.bucket.Get(ctx, function, version)
	return p, translate(err)
}

func (s policyStore) Apply(ctx context.Context, p *ratelimit.Policy) (revision uint64, changed bool, err error) {
	revision, changed, err = s.bucket.Apply(ctx, p)
	return revision, changed, translate(err)
}

func (s policyStore) Put(ctx context.Context, p *ratelimit.Policy, expected uint64) (uint64, error) {
	revision, err := s.bucket.Put(ctx, p, expected)
	return revision, translate(err)
}

func (s policyStore) Delete(ctx context.Context, function, version string, expected uint64) error {
	return translate(s.bucket.Delete(ctx, function, version, expected))
}

// translate turns the store's errors into those of the admin API, and keeps
// the cause.
func translate(err error) error {
	var conflict *kvstore.PolicyConflict
	switch {
	case errors.As(err, &conflict):
		return fmt.Errorf("%w: %w", &admin.ConflictError{Current: conflict.Current}, err)
	case errors.Is(err, kvstore.ErrPolicyNotFound), errors.Is(err, kvstore.ErrNoCounter):
		return fmt.Errorf("%w: %w", admin.ErrNotFound, err)
	default:
		return err
	}
}
