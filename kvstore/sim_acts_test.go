package kvstore

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// simAct is something that happens to a node.
type simAct struct {
	at    time.Duration
	what  simDeed
	node  int
	names []string // of those it takes for the living
}

type simDeed uint8

const (
	simView      simDeed = iota // the node's list of the living changes
	simFreeze                   // the node stands still
	simThaw                     // and moves again
	simCrash                    // the node dies
	simDrain                    // the node stops in good order
	simStart                    // the node comes back, if it is gone
	simCut                      // the node loses its connection
	simReconnect                // and has it again
)

func (a simAct) String() string {
	deeds := [...]string{"view", "freeze", "thaw", "crash", "drain", "start", "cut", "reconnect"}
	return strings.TrimSpace(fmt.Sprintf("%8v %s %s %s", a.at.Round(time.Millisecond), simName(a.node), deeds[a.what], strings.Join(a.names, " ")))
}

func newSimActs(rng *rand.Rand, sc *simScenario) []simAct {
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	var acts []simAct
	for range rng.IntN(6) {
		node, from := rng.IntN(sc.nodes), upTo(sc.span)
		pair := func(first, then simDeed, lasts time.Duration) {
			acts = append(acts, simAct{at: from, what: first, node: node}, simAct{at: from + lasts, what: then, node: node})
		}
		switch rng.IntN(12) {
		case 0, 1: // who lives is known at different moments
			names := simSome(rng, sc)
			for i := range sc.nodes {
				acts = append(acts, simAct{at: from + upTo(500*time.Millisecond), what: simView, node: i, names: names})
			}
		case 2, 3: // somebody has a view of its own for a while
			acts = append(acts, simAct{at: from, what: simView, node: node, names: simSome(rng, sc)},
				simAct{at: from + upTo(time.Second), what: simView, node: node, names: sc.names()})
		case 4, 5, 6:
			longest := simPick(rng, 100*time.Millisecond, 500*time.Millisecond, 5*time.Second)
			pair(simFreeze, simThaw, 50*time.Millisecond+upTo(longest))
		case 7:
			pair(simCrash, simStart, 50*time.Millisecond+upTo(2*time.Second))
		case 8, 9:
			pair(simDrain, simStart, 50*time.Millisecond+upTo(2*time.Second))
		default:
			pair(simCut, simReconnect, 20*time.Millisecond+upTo(time.Second))
		}
	}
	slices.SortStableFunc(acts, func(a, b simAct) int { return cmp.Compare(a.at, b.at) })
	return acts
}

// simSome are some of the nodes.
func simSome(rng *rand.Rand, sc *simScenario) []string {
	return slices.DeleteFunc(sc.names(), func(string) bool { return rng.IntN(3) == 0 })
}

// perform does what an act says.
func (w *simWorld) perform(a simAct) {
	n := w.nodes[a.node]
	w.tell("%v", a)
	switch a.what {
	case simView:
		n.list.set(a.names...)
	case simFreeze:
		n.freeze()
	case simThaw:
		n.thaw()
	case simCrash:
		w.background.Go(n.crash)
	case simDrain:
		w.background.Go(func() { // it takes a while, and the world goes on
			if err := n.stop(); err != nil {
				w.tell("%s drained: %v", n.name, err)
			}
		})
	case simStart:
		n.start()
	case simCut:
		n.cut.Store(true)
	case simReconnect:
		n.cut.Store(false)
	}
}
