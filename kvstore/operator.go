package kvstore

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Bounds of an operator's dealing with all nodes.
const (
	// holdPatience bounds one round of asking all nodes to hold a counter.
	holdPatience = 800 * time.Millisecond
	// holdWithin bounds how long a node takes to settle what it owes of a
	// counter; it is less than holdPatience, so that the asker hears of it.
	holdWithin = 600 * time.Millisecond
	// askPatience bounds one round of asking all nodes anything else.
	askPatience = 400 * time.Millisecond
	// holdLife is when a node lets go of a counter by itself, because whoever
	// asked for the hold may be gone. It is longer than what follows the last
	// round of holds: one wait for leases to end, one round, one exchange.
	holdLife = 5 * time.Second
	// exchangeWithin bounds the exchange, its repeats included.
	exchangeWithin = 2 * time.Second
	// heldMost bounds the counters that a node holds for operators at a time.
	heldMost = 1024
)

// errOperatorStopped: the node holds nothing for operators any more.
var errOperatorStopped = errors.New("it is leaving")

// Holder is a node's limiter, as far as operators need it; a
// [*ratelimit.Limiter] is one.
type Holder interface {
	// Hold ends the node's leases on a counter, has what it owes settled and
	// grants nothing until release is called.
	Hold(ctx context.Context, key ratelimit.Key) (release func(), err error)
	// Leased is what the node may spend without asking, and until when.
	Leased(key ratelimit.Key) (units int64, until counter.Instant)
}

var _ Holder = (*ratelimit.Limiter)(nil)

// Operator does to a counter what concerns every node: each node has one, and
// any of them may be asked. Use [NewOperator]; the zero Operator is not usable.
// All methods may be called concurrently.
type Operator struct {
	store  *Store
	holder Holder
	node   string // names its exchanges
	serial atomic.Uint64

	mu      sync.Mutex
	stop    func()           // ends the answering; nil before Start
	stopped bool             // holds nothing more
	held    map[string]*held // by the name that the asker gave the hold
}

// held is a counter held for an operator.
type held struct {
	release func()
	expiry  *time.Timer
	until   time.Time
}

// NewOperator returns an Operator that is to be started. It does no I/O.
func NewOperator(store *Store, holder Holder) *Operator {
	o := &Operator{
		store: store, holder: holder,
		// Apart from the node's own exchanges, whose serials it does not know.
		node: store.cfg.NodeName + "/operator",
		held: make(map[string]*held),
	}
	// Serials rise across restarts: nobody operates once per nanosecond.
	o.serial.Store(uint64(time.Now().UnixNano()))
	return o
}

// Start begins to answer the operators of other nodes. It is to be called before
// the node leases anything, so that others can end its leases. Errors:
// [ErrStarted], and [ratelimit.ErrUnavailable] before the store is joined.
func (o *Operator) Start(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stop != nil || o.stopped {
		return ErrStarted
	}
	stop, err := o.store.servePeers(o.answer)
	if err != nil {
		return err
	}
	o.stop = stop
	return nil
}

// Stop answers no more, waits for the answers under way and lets go of all that
// is held here. It is to be called when the node leases nothing any more. It may
// be called again, and before Start.
func (o *Operator) Stop(context.Context) error {
	o.mu.Lock()
	stop, all := o.stop, o.held
	o.stop, o.stopped, o.held = nil, true, nil
	o.mu.Unlock()
	if stop != nil {
		stop()
	}
	for _, h := range all {
		h.expiry.Stop()
		h.release()
	}
	return nil
}

// hold holds a counter under a name until it is let go, or for holdLife. Held
// under that name already, it is held that long again.
func (o *Operator) hold(ctx context.Context, name string, key ratelimit.Key) error {
	if known, err := o.prolong(name); known || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, holdWithin)
	defer cancel()
	release, err := o.holder.Hold(ctx, key)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.stopped || o.held[name] != nil {
		release()
		if o.stopped {
			return errOperatorStopped
		}
		return nil // a second request under the name was faster
	}
	o.held[name] = &held{
		release: release, until: time.Now().Add(holdLife),
		expiry: time.AfterFunc(holdLife, func() { o.expire(name) }),
	}
	return nil
}

// prolong reports whether there is a hold of that name, which it prolongs. The
// error is why there can be none.
func (o *Operator) prolong(name string) (known bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	h := o.held[name]
	switch {
	case h != nil:
		h.until = time.Now().Add(holdLife)
		h.expiry.Reset(holdLife)
		return true, nil
	case o.stopped:
		return false, errOperatorStopped
	case len(o.held) >= heldMost:
		return false, errors.New("it holds too many counters")
	}
	return false, nil
}

// expire lets go of a hold that nobody prolonged.
func (o *Operator) expire(name string) {
	o.mu.Lock()
	h := o.held[name]
	if h == nil || time.Now().Before(h.until) {
		o.mu.Unlock()
		return
	}
	delete(o.held, name)
	o.mu.Unlock()
	h.release()
}

// letGo ends a hold; one that is unknown has ended before.
func (o *Operator) letGo(name string) {
	o.mu.Lock()
	h := o.held[name]
	delete(o.held, name)
	o.mu.Unlock()
	if h != nil {
		h.expiry.Stop()
		h.release()
	}
}
