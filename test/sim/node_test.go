package sim

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

// link is what lies between a node and the store.
type link int32

const (
	whole   link = iota
	refused      // every request fails at once
	silent       // nothing is answered
)

var cutKinds = [...]link{refused, silent}

// node is a place where limiters live, one after the other.
type node struct {
	w     *world
	name  string
	clock *storetest.Clock
	link  atomic.Int32

	mu   sync.Mutex
	life *life // nil while the node is down
	past []*life
}

// life is one limiter from its start to its end.
type life struct {
	id      int
	node    *node
	limiter *ratelimit.Limiter
	calls   sync.WaitGroup
	dead    atomic.Bool // crashed: nothing leaves it any more
	lost    bool        // crashed, or stopped with something unsettled
}

func (n *node) current() *life {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.life
}

// enter is the life that count calls go to, which then waits for them before it
// ends in good order; nil while the node is down.
func (n *node) enter(count int) *life {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life != nil {
		n.life.calls.Add(count)
	}
	return n.life
}

// start brings the node up, if it is down.
func (n *node) start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.life != nil {
		return
	}
	lf := n.w.newLife(n)
	cfg := n.w.sc.config
	cfg.Node = n.name
	nodes := n.w.sc.nodes
	l, err := ratelimit.New(lf, n.clock, &n.w.finder, n.w.keys, cfg, ratelimit.WithNodes(func() int { return nodes }))
	if err != nil {
		panic(err) // the simulation's own configuration
	}
	if err := l.Start(context.Background()); err != nil {
		panic(err) // it is started once
	}
	lf.limiter = l
	n.life = lf
}

// newLife numbers a life.
func (w *world) newLife(n *node) *life {
	w.mu.Lock()
	defer w.mu.Unlock()
	lf := &life{id: len(w.lives), node: n}
	w.lives = append(w.lives, lf)
	return lf
}

// down takes the node's limiter out of traffic.
func (n *node) down() *life {
	n.mu.Lock()
	defer n.mu.Unlock()
	lf := n.life
	if lf != nil {
		n.past = append(n.past, lf)
		n.life = nil
	}
	return lf
}

// crash ends a life without a word: what was sent may arrive, nothing more is.
func (n *node) crash() {
	if lf := n.down(); lf != nil {
		lf.dead.Store(true)
		lf.lost = true
	}
}

// stopBound is what a node gets to settle in.
const stopBound = 5 * time.Second

// stop ends a life in good order: its front doors are closed first.
func (n *node) stop() {
	lf := n.down()
	if lf == nil {
		return
	}
	lf.calls.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), stopBound)
	defer cancel()
	err := lf.limiter.Stop(ctx)
	var unsettled *ratelimit.UnsettledError
	switch {
	case err == nil:
	case !errors.As(err, &unsettled):
		n.w.fault("%s: stop: %v, want an UnsettledError", n.name, err)
	case n.w.sc.calm:
		n.w.fault("%s: stop on a calm day: %v", n.name, err)
	}
	lf.lost = err != nil
	lf.dead.Store(true)
}

// bury ends the goroutines of all past lives.
func (n *node) bury() {
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	for _, lf := range n.past {
		// A crashed one has nobody to settle with; that it says so is not news.
		_ = lf.limiter.Stop(gone)
	}
}

// Exchange implements [ratelimit.Store]: the life's way to the store.
func (lf *life) Exchange(ctx context.Context, x ratelimit.Exchange) (ratelimit.Grant, error) {
	w := lf.node.w
	if err := lf.unreachable(ctx); err != nil {
		return ratelimit.Grant{}, err
	}
	started := w.truth.Now()
	x = w.tamper.request(x)
	w.ledger.sent(lf, x)
	g, err := w.mem.Exchange(ctx, x)
	if err != nil {
		return ratelimit.Grant{}, err
	}
	g = w.tamper.answer(x, g)
	if lf.dead.Load() || link(lf.node.link.Load()) != whole {
		<-ctx.Done() // the answer is lost on the way
		return ratelimit.Grant{}, fmt.Errorf("answer lost: %w", ctx.Err())
	}
	w.ledger.delivered(lf, x, g, started)
	return g, nil
}

func (lf *life) unreachable(ctx context.Context) error {
	switch {
	case lf.dead.Load():
		return fmt.Errorf("dead: %w", ratelimit.ErrUnavailable)
	case link(lf.node.link.Load()) == refused:
		return fmt.Errorf("cut off: %w", ratelimit.ErrUnavailable)
	case link(lf.node.link.Load()) == silent:
		<-ctx.Done()
		return fmt.Errorf("cut off: %w", ctx.Err())
	}
	return nil
}
