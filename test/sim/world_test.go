package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// world is one scenario under way. It lives in one bubble of virtual time.
type world struct {
	sc       scenario
	truth    *storetest.Clock
	mem      *storetest.Memory
	keys     *ratelimit.Keyring
	finder   finder
	nodes    []*node
	revision []int // of each function
	ledger   *ledger
	calls    sync.WaitGroup
	healed   atomic.Bool // the network is perfect from now on
	tamper   tamper      // for the tests of the simulation itself
	closed   bool        // the books: nothing is in doubt any more

	mu     sync.Mutex
	faults []string
	lives  []*life // of all nodes, in the order of their starts
}

// maxFaults bounds what one seed reports.
const maxFaults = 8

// fault reports a broken promise.
func (w *world) fault(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.faults) < maxFaults {
		w.faults = append(w.faults, fmt.Sprintf(format, args...))
	}
}

func newWorld(sc scenario) *world {
	w := &world{
		sc: sc, truth: storetest.NewClock(), keys: ratelimit.NewKeyring(),
		revision: make([]int, len(sc.functions)),
	}
	w.ledger = newLedger(w)
	w.keys.SetSecret([]byte("a secret of the simulation"))
	w.mem = storetest.NewMemory(w.truth, storetest.WithFaults(w.faultOf), storetest.WithObserver(w.ledger.applied))
	for i := range sc.functions {
		w.setPolicy(i)
	}
	rng := rand.New(rand.NewPCG(sc.seed, 0x636c6f63))
	for i := range sc.nodes {
		n := &node{w: w, name: fmt.Sprintf("node-%d", i), clock: storetest.NewClock()}
		n.clock.Set(skewOf(rng, &sc), sc.clockOff)
		w.nodes = append(w.nodes, n)
	}
	return w
}

// faultOf draws the fault of an exchange from what it is and not from when it
// comes, so that two runs of a seed differ as little as can be.
func (w *world) faultOf(x ratelimit.Exchange) storetest.Fault {
	if w.healed.Load() {
		return storetest.Fault{}
	}
	h := fnv.New64a()
	fmt.Fprint(h, x.Node, x.Key, w.ledger.nth(x))
	rng := rand.New(rand.NewPCG(w.sc.seed, h.Sum64()))
	f := w.sc.plan.Draw(rng)
	if w.sc.latency > 0 {
		f.Before += time.Duration(rng.Int64N(int64(w.sc.latency)))
		f.After += time.Duration(rng.Int64N(int64(w.sc.latency)))
	}
	return f
}

// run is the whole of a seed.
func (w *world) run() {
	time.Sleep(w.sc.offset)
	w.ledger.begin = w.truth.Now()
	for _, n := range w.nodes {
		n.start()
	}
	w.live()
	w.heal()
	w.checkSettled()
	w.leaveAlone()
	for _, n := range w.nodes {
		n.stop()
		n.bury()
	}
	w.checkLedger()
}

// live is the time of traffic and of all that happens meanwhile.
func (w *world) live() {
	begin := time.Now()
	acts := make(chan struct{})
	go func() {
		defer close(acts)
		for _, a := range w.sc.acts {
			time.Sleep(a.at - time.Since(begin))
			w.perform(a)
		}
	}()
	for i := range w.sc.arrivals {
		a := &w.sc.arrivals[i]
		time.Sleep(a.at - time.Since(begin))
		lf := w.nodes[a.node].enter(int(a.count))
		if lf == nil {
			continue // the invocation finds another platform
		}
		for range a.count {
			w.calls.Go(func() {
				defer lf.calls.Done()
				w.call(lf, a)
			})
		}
	}
	<-acts
	w.calls.Wait()
}

// call is one invocation.
func (w *world) call(lf *life, a *arrival) {
	ctx := context.Background()
	if a.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.patience)
		defer cancel()
	}
	from := w.truth.Now()
	d, err := lf.limiter.Decide(ctx, a.inv)
	to := w.truth.Now()
	if waited, bound := to.Sub(from), w.longestWait(); waited > bound {
		w.fault("%s: a decision took %v, want %v at most", lf.node.name, waited, bound)
	}
	switch {
	case err == nil:
		w.checkAnswer(a.inv, d)
		w.ledger.decided(lf, a.inv, d, from, to)
	case errors.Is(err, ratelimit.ErrStopped):
	case a.patience > 0 && errors.Is(err, context.DeadlineExceeded):
	default:
		w.fault("%s: an error reached a caller: %v", lf.node.name, err)
	}
}

// longestWait: an attempt for each tier.
func (w *world) longestWait() time.Duration {
	return ratelimit.Tiers * (w.sc.config.Attempt + time.Millisecond)
}

// checkAnswer holds a decision to what can be said of it alone.
func (w *world) checkAnswer(inv ratelimit.Invocation, d ratelimit.Decision) {
	if d.Policy == nil {
		w.fault("no policy decided")
		return
	}
	capacity := capacityFor(d.Policy, inv)
	switch {
	case d.Outcome == ratelimit.Impossible && max(1, inv.Cost) <= capacity:
		w.fault("cost %d called impossible, the capacity is %d", inv.Cost, capacity)
	case d.Outcome != ratelimit.Impossible && max(1, inv.Cost) > capacity:
		w.fault("cost %d is %v, the capacity is %d", inv.Cost, d.Outcome, capacity)
	case d.Outcome == ratelimit.Denied && d.RetryAfter <= 0 && d.Remaining < max(1, inv.Cost) && !d.Degraded:
		// With enough remaining it says: there was none when the store decided,
		// and there is by now.
		w.fault("denied by %v %v without saying for how long: cost %d, %+v", d.Tier, d.Rate, inv.Cost, d)
	case d.Outcome == ratelimit.Denied && d.Tier == ratelimit.NoTier:
		w.fault("denied by no tier")
	case d.Outcome == ratelimit.Denied && !d.Degraded && d.Rate == (counter.Rate{}):
		w.fault("denied by no rate: cost %d, %+v", inv.Cost, d)
	case d.Outcome == ratelimit.Admitted && d.Remaining < 0 && capacity < unlimited:
		w.fault("admitted with %d remaining", d.Remaining)
	case w.sc.calm && d.Degraded:
		w.fault("degraded on a calm day: %+v", d)
	}
}

// unlimited is the capacity of an invocation that nothing limits.
const unlimited = int64(1) << 62

// capacityFor is the largest cost that a policy could ever admit.
func capacityFor(p *ratelimit.Policy, inv ratelimit.Invocation) int64 {
	least := unlimited
	for _, tier := range tiers {
		if tier == ratelimit.Subject && inv.Subject == "" {
			continue
		}
		for _, r := range ratesOf(p, tier, inv.Account) {
			least = min(least, r.Capacity())
		}
	}
	return least
}

var tiers = [...]ratelimit.Tier{ratelimit.Subject, ratelimit.Account, ratelimit.Total}
