package kvstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// simNode is a place where lives are led, one after the other.
type simNode struct {
	w     *simWorld
	name  string
	clock *storetest.Clock
	list  *roster
	cut   atomic.Bool // it has lost its connection

	mu   sync.Mutex
	ice  chan struct{} // closed when the node moves again; nil: it does
	life *simLife      // nil while the node is down
}

// simLife is one process of a node: limiter, owners and settler.
type simLife struct {
	node    *simNode
	port    *simPort
	settler *settler
	owners  *owners
	limiter *ratelimit.Limiter
	calls   sync.WaitGroup
	crashed atomic.Bool
	lost    atomic.Bool // crashed, or stopped with something unsettled
}

// freeze lets nothing into the node or out of it until it thaws.
func (n *simNode) freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ice == nil {
		n.ice = make(chan struct{})
	}
}

func (n *simNode) thaw() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ice != nil {
		close(n.ice)
		n.ice = nil
	}
}

func (n *simNode) frozen() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ice != nil
}

// hold holds what comes in or goes out while the node stands still.
func (n *simNode) hold() {
	for {
		n.mu.Lock()
		ice := n.ice
		n.mu.Unlock()
		if ice == nil {
			return
		}
		<-ice
	}
}

// start begins a life, unless one is being led.
func (n *simNode) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life != nil {
		return
	}
	w := n.w
	lf := &simLife{node: n, port: &simPort{net: w.net, node: n}}
	lf.port.life = lf
	cfg := w.sc.settlers
	cfg.Node = n.name
	lf.settler = newSettler(&simJetStream{port: lf.port}, streamPrefix+CountersBucket, n.clock, cfg, w.metrics)
	lf.settler.bucket.nc = lf.port
	lf.owners = newOwners(lf.port, lf.settler, n.list, n.name, w.sc.owners, w.metrics)
	config := w.sc.config
	config.Node = n.name
	var err error
	lf.limiter, err = ratelimit.New(lf, n.clock, w, w.keys, config, ratelimit.WithNodes(func() int { return w.sc.nodes }))
	if err != nil {
		panic(err) // the simulation's own configuration
	}
	if err := errors.Join(lf.owners.Start(context.Background()), lf.limiter.Start(context.Background())); err != nil {
		panic(err) // both are started once
	}
	n.life = lf
	w.lived(lf)
}

// enter is the life that count calls go to, which then waits for them before it
// ends in good order; nil while the node is down.
func (n *simNode) enter(count int) *simLife {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life != nil {
		n.life.calls.Add(count)
	}
	return n.life
}

// down takes the node out of traffic.
func (n *simNode) down() *simLife {
	n.mu.Lock()
	defer n.mu.Unlock()
	lf := n.life
	n.life = nil
	return lf
}

// crash ends a life without a word: what was sent may arrive, nothing more is.
func (n *simNode) crash() {
	lf := n.down()
	if lf == nil {
		return
	}
	lf.crashed.Store(true)
	lf.lost.Store(true)
	lf.port.dead.Store(true)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_ = lf.close(gone) // nothing can be settled any more, and nobody is told
}

// simStopBound is what a node gets to settle in.
const simStopBound = 8 * time.Second

// stop ends a life in good order: its front doors are closed first.
func (n *simNode) stop() error {
	lf := n.down()
	if lf == nil {
		return nil
	}
	lf.calls.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), simStopBound)
	defer cancel()
	err := lf.close(ctx)
	lf.lost.Store(err != nil)
	lf.port.dead.Store(true)
	return err
}

// close stops the parts of a life in the order in which a process stops them.
func (lf *simLife) close(ctx context.Context) error {
	var errs []error
	if err := lf.limiter.Stop(ctx); err != nil {
		errs = append(errs, fmt.Errorf("limiter: %w", err))
	}
	if err := lf.owners.Stop(ctx); err != nil {
		errs = append(errs, fmt.Errorf("owners: %w", err))
	}
	if err := lf.settler.Stop(ctx); err != nil {
		errs = append(errs, fmt.Errorf("settler: %w", err))
	}
	return errors.Join(errs...)
}

// Exchange implements [ratelimit.Store]: what the limiter asks passes here, to
// be looked at.
func (lf *simLife) Exchange(ctx context.Context, x ratelimit.Exchange) (ratelimit.Grant, error) {
	w := lf.node.w
	g, err := lf.owners.Exchange(ctx, x)
	w.exchanged(lf, x, g, err)
	return g, err
}
