package daemon

import (
	"context"
	"errors"
	"fmt"

	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// counterOperator is the store's operator as the admin API wants it.
type counterOperator struct{ *kvstore.Operator }

func (o counterOperator) Reset(ctx context.Context, key ratelimit.Key, rates []counter.Rate) error {
	err := o.Operator.Reset(ctx, key, rates)
	var failed *kvstore.ResetError
	if !errors.As(err, &failed) || len(failed.Silent)+len(failed.Refused) == 0 {
		return err
	}
	return fmt.Errorf("%w: %w", &admin.NodesError{Silent: failed.Silent, Refused: failed.Refused}, err)
}

func (o counterOperator) Leases(ctx context.Context, key ratelimit.Key) (admin.Leases, error) {
	held, silent, err := o.Operator.Leases(ctx, key)
	leases := admin.Leases{Silent: silent}
	for _, l := range held {
		leases.Held = append(leases.Held, admin.Lease(l))
	}
	return leases, err
}
