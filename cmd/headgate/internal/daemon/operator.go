package daemon

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Bounds of an operator's dealing with all nodes. A hold outlives the two steps
// of a reset together, so that no node lets go in between.
const (
	holdPatience     = time.Second
	exchangePatience = time.Second
	holdLife         = 3 * time.Second
)

// operator does to a counter what concerns every node; see [admin.Operator].
type operator struct {
	node    string
	store   *kvstore.Store
	limiter *ratelimit.Limiter
	clock   ratelimit.Clock
	serial  atomic.Uint64
}

func newOperator(cfg kvstore.Config, store *kvstore.Store, limiter *ratelimit.Limiter, clock ratelimit.Clock) *operator {
	o := &operator{node: cfg.NodeName, store: store, limiter: limiter, clock: clock}
	// Serials must rise across restarts, and no operator acts twice in a
	// nanosecond.
	o.serial.Store(uint64(time.Now().UnixNano()))
	return o
}

// Reset holds the counter at every node, so that no lease of before outlives
// the reset, and then forgets what was spent. A node that is alive and does not
// answer makes it fail, with nothing forgotten.
func (o *operator) Reset(ctx context.Context, key ratelimit.Key, rates []counter.Rate) error {
	held := rand.Text()
	defer o.release(ctx, held)
	release, err := o.hold(ctx, key, held)
	if err != nil {
		return err
	}
	defer release()
	return o.exchange(ctx, ratelimit.Exchange{Key: key, Rates: rates, Reset: true})
}

// hold holds the counter here and at all others under the name held.
func (o *operator) hold(ctx context.Context, key ratelimit.Key, held string) (release func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, holdPatience)
	defer cancel()
	release, err = o.limiter.Hold(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("%w: this node's leases cannot be settled: %w", ratelimit.ErrUnavailable, err)
	}
	if _, err := o.ask(ctx, peerRequest{Op: opHold, Key: key, Held: held}); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// release lets go at all other nodes. Those that do not hear of it let go by
// themselves after holdLife.
func (o *operator) release(ctx context.Context, held string) {
	_, _ = o.ask(context.WithoutCancel(ctx), peerRequest{Op: opRelease, Held: held})
}

// Grant adds units in the current window. Nodes that deny by what they knew
// before are told to look again; one that does not hear of it does so within a
// sync interval anyway.
func (o *operator) Grant(ctx context.Context, key ratelimit.Key, rates []counter.Rate, units int64) error {
	if err := o.exchange(ctx, ratelimit.Exchange{Key: key, Rates: rates, Add: units}); err != nil {
		return err
	}
	o.refresh(ctx, key)
	_, _ = o.ask(ctx, peerRequest{Op: opRefresh, Key: key})
	return nil
}

// refresh makes this node forget what it knows of the counter and read it
// again: to hold it and let go does both.
func (o *operator) refresh(ctx context.Context, key ratelimit.Key) {
	ctx, cancel := context.WithTimeout(ctx, holdPatience)
	defer cancel()
	if release, err := o.limiter.Hold(ctx, key); err == nil {
		release()
	}
}

func (o *operator) exchange(ctx context.Context, x ratelimit.Exchange) error {
	ctx, cancel := context.WithTimeout(ctx, exchangePatience)
	defer cancel()
	x.Node, x.Serial = o.node+"/operator", o.serial.Add(1)
	_, err := o.store.Exchange(ctx, x)
	return err
}

// Leases asks every node what it holds of the counter.
func (o *operator) Leases(ctx context.Context, key ratelimit.Key) ([]admin.Lease, error) {
	answers, err := o.ask(ctx, peerRequest{Op: opLeases, Key: key})
	if err != nil {
		return nil, err
	}
	answers[o.node] = o.leased(key)
	var leases []admin.Lease
	for node, a := range answers {
		if a.Units > 0 {
			leases = append(leases, admin.Lease{Node: node, Units: a.Units, Until: a.Until})
		}
	}
	slices.SortFunc(leases, func(a, b admin.Lease) int { return cmp.Compare(a.Node, b.Node) })
	return leases, nil
}

// leased is what this node holds of the counter.
func (o *operator) leased(key ratelimit.Key) peerAnswer {
	units, until := o.limiter.Leased(key)
	if units == 0 {
		return peerAnswer{}
	}
	return peerAnswer{Units: units, Until: max(0, until.Sub(o.clock.Now()))}
}

// ask asks all other nodes. The error names every one that did not answer or
// could not do it.
func (o *operator) ask(ctx context.Context, r peerRequest) (map[string]peerAnswer, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a request to other nodes: %w", err)
	}
	raw, err := o.store.AskPeers(ctx, data)
	answers := make(map[string]peerAnswer, len(raw))
	faults := []error{err}
	for node, text := range raw {
		var a peerAnswer
		if err := json.Unmarshal(text, &a); err != nil {
			faults = append(faults, &kvstore.PeerError{Node: node, Cause: err})
		} else if a.Fault != "" {
			faults = append(faults, &kvstore.PeerError{Node: node, Cause: errors.New(a.Fault)})
		}
		answers[node] = a
	}
	return answers, errors.Join(faults...)
}
