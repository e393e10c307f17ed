package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// act is something that happens to the fleet.
type act struct {
	at   time.Duration
	what deed
	node int           // whom it happens to
	arg  int           // of which kind, or which function and policy
	skew time.Duration // what a clock is set to
}

type deed uint8

const (
	cutOff    deed = iota // the node and the store lose each other; arg: how
	reconnect             // and find each other
	crash                 // the node dies with its leases
	restart               // the node stops in good order and comes back
	start                 // the node comes back, if it is gone
	outage                // the store goes away; arg: how
	storeBack             // the store is back
	setClock              // the node's clock is set to another error within its bound
	newPolicy             // the next policy of function arg comes into force
)

func (a act) String() string {
	names := [...]string{"cutOff", "reconnect", "crash", "restart", "start", "outage", "storeBack", "setClock", "newPolicy"}
	return fmt.Sprintf("%8v %s node=%d arg=%d skew=%v", a.at.Round(time.Millisecond), names[a.what], a.node, a.arg, a.skew)
}

func newActs(rng *rand.Rand, sc *scenario) []act {
	var acts []act
	within := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	for i := range sc.functions {
		for range sc.functions[i].policies[1:] {
			acts = append(acts, act{at: within(sc.span), what: newPolicy, arg: i})
		}
	}
	if sc.clockOff > 0 {
		for range rng.IntN(4 * sc.nodes) {
			acts = append(acts, act{at: within(sc.span), what: setClock, node: rng.IntN(sc.nodes), skew: skewOf(rng, sc)})
		}
	}
	if sc.calm {
		return ordered(acts)
	}
	for range rng.IntN(5) {
		from, node := within(sc.span), rng.IntN(sc.nodes)
		until := from + 50*time.Millisecond + within(2*time.Second)
		switch rng.IntN(5) {
		case 0:
			acts = append(acts, act{at: from, what: cutOff, node: node, arg: rng.IntN(2)}, act{at: until, what: reconnect, node: node})
		case 1:
			acts = append(acts, act{at: from, what: crash, node: node}, act{at: until, what: start, node: node})
		case 2:
			acts = append(acts, act{at: from, what: restart, node: node})
		default:
			how := pick(rng, storetest.Refusing, storetest.Silent)
			acts = append(acts, act{at: from, what: outage, arg: int(how)}, act{at: until, what: storeBack})
		}
	}
	return ordered(acts)
}

func skewOf(rng *rand.Rand, sc *scenario) time.Duration {
	return time.Duration((2*rng.Float64() - 1) * float64(sc.clockOff))
}

func ordered(acts []act) []act {
	slices.SortStableFunc(acts, func(a, b act) int { return cmp.Compare(a.at, b.at) })
	return acts
}

// perform does what an act says.
func (w *world) perform(a act) {
	n := w.nodes[a.node]
	switch a.what {
	case cutOff:
		n.link.Store(int32(cutKinds[a.arg]))
	case reconnect:
		n.link.Store(int32(whole))
	case crash:
		n.crash()
	case restart:
		w.calls.Go(func() { // it takes a while, and the world goes on
			n.stop()
			n.start()
		})
	case start:
		n.start()
	case outage:
		w.mem.SetAway(storetest.Away(a.arg))
	case storeBack:
		w.mem.SetAway(storetest.Here)
	case setClock:
		n.clock.Set(a.skew, w.sc.clockOff)
	case newPolicy:
		w.nextPolicy(a.arg)
	}
}

// nextPolicy brings the next policy of a function into force.
func (w *world) nextPolicy(function int) {
	w.revision[function]++
	w.setPolicy(function)
}

func (w *world) setPolicy(function int) {
	p := w.sc.functions[function].policies[w.revision[function]]
	w.ledger.changes[function] = append(w.ledger.changes[function], change{w.truth.Now(), p})
	w.finder.set(p)
}
