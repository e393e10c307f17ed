package kvstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// simWorld is one scenario under way. It lives in one bubble of virtual time.
type simWorld struct {
	sc         simScenario
	truth      *storetest.Clock
	store      *simStore
	net        *simNet
	keys       *ratelimit.Keyring
	metrics    *metrics
	nodes      []*simNode
	begin      counter.Instant
	calls      sync.WaitGroup
	background sync.WaitGroup

	mu        sync.Mutex
	books     map[ratelimit.Key]*simBook
	lives     []*simLife
	faults    []string
	story     []string
	forgotten int

	decided, admitted, degraded, balanced atomic.Int64
}

// simMaxFaults bounds what one seed reports.
const simMaxFaults = 8

// fault reports a broken promise.
func (w *simWorld) fault(format string, args ...any) {
	w.tell(format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) < simMaxFaults {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

// since is an instant as people read it here: after the scenario's beginning.
func (w *simWorld) since(at counter.Instant) time.Duration { return at.Sub(w.begin) }

func newSimWorld(sc simScenario, tm simTamper) *simWorld {
	w := &simWorld{
		sc: sc, truth: storetest.NewClock(), keys: ratelimit.NewKeyring(), metrics: newMetrics(nil),
		books: make(map[ratelimit.Key]*simBook),
	}
	w.keys.SetSecret([]byte("a secret of the simulation"))
	w.store = newSimStore(tm, w.written)
	w.net = newSimNet(sc.seed, sc.plan, w.store)
	rng := rand.New(rand.NewPCG(sc.seed, 0x636c6f63))
	for i := range sc.nodes {
		n := &simNode{w: w, name: simName(i), clock: storetest.NewClock(), list: newRoster(sc.names()...)}
		n.clock.Set(time.Duration((2*rng.Float64()-1)*float64(sc.clockOff)), sc.clockOff)
		w.nodes = append(w.nodes, n)
	}
	return w
}

// Find implements [ratelimit.Finder].
func (w *simWorld) Find(context.Context, string, string) (*ratelimit.Policy, bool) {
	return w.sc.policy, false
}

// Generation implements [ratelimit.Finder].
func (w *simWorld) Generation() uint64 { return 1 }

// run is the whole of a seed.
func (w *simWorld) run() {
	time.Sleep(w.sc.offset)
	w.begin = w.truth.Now()
	for _, n := range w.nodes {
		n.start()
	}
	w.live()
	w.heal()
	if !w.sc.stopFirst {
		time.Sleep(w.lateBound())
	}
	w.stop()
	time.Sleep(w.lateBound())
	w.net.flights.Wait()
	w.checkLimits()
	w.audit()
	w.checkFull()
}

// live is the time of traffic and of all that happens meanwhile.
func (w *simWorld) live() {
	begin := time.Now()
	w.calls.Go(func() {
		for _, a := range w.sc.acts {
			time.Sleep(a.at - time.Since(begin))
			if time.Since(begin) <= w.sc.span {
				w.perform(a)
			}
		}
	})
	for i := range w.sc.arrivals {
		a := &w.sc.arrivals[i]
		time.Sleep(a.at - time.Since(begin))
		lf := w.nodes[a.node].enter(a.count)
		if lf == nil {
			continue // the invocation finds another platform
		}
		for range a.count {
			w.calls.Go(func() {
				defer lf.calls.Done()
				w.call(lf, a.inv)
			})
		}
	}
	w.calls.Wait()
}

// call is one invocation.
func (w *simWorld) call(lf *simLife, inv ratelimit.Invocation) {
	from := w.truth.Now()
	d, err := lf.limiter.Decide(context.Background(), inv)
	to := w.truth.Now()
	tiers := w.sc.tiersOf(inv)
	if waited, bound := to.Sub(from), time.Duration(len(tiers))*w.sc.config.Attempt+time.Millisecond; waited > bound {
		w.fault("%s: a decision took %v, want %v at most", lf.node.name, waited, bound)
	}
	switch {
	case lf.crashed.Load(): // nobody hears the answer
	case err != nil:
		w.fault("%s: an error reached a caller: %v", lf.node.name, err)
	default:
		w.noteDecision(lf, inv, d, from, to)
	}
}

// heal makes all well: from now on nothing goes wrong.
func (w *simWorld) heal() {
	w.tell("all is well again")
	w.net.healed.Store(true)
	for _, n := range w.nodes {
		n.thaw()
		n.cut.Store(false)
	}
	w.background.Wait() // who drains has the time that it was given
	var living []string
	for _, n := range w.nodes {
		if n.enter(0) != nil {
			living = append(living, n.name)
		}
	}
	for _, n := range w.nodes {
		n.list.set(living...)
	}
}

// lateBound is when the last message has arrived, and what it sets off is done.
func (w *simWorld) lateBound() time.Duration {
	return 2*w.sc.plan.MaxLate + 4*w.sc.config.Attempt + time.Second
}

// stop stops all nodes in good order, together. Nobody may leave anything
// unsettled.
func (w *simWorld) stop() {
	var stops sync.WaitGroup
	for _, n := range w.nodes {
		stops.Go(func() {
			if err := n.stop(); err != nil {
				w.fault("%s: stopped when all was well: %v", n.name, err)
			}
		})
	}
	stops.Wait()
}

// lived notes a life.
func (w *simWorld) lived(lf *simLife) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives = append(w.lives, lf)
}
