package kvstore

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

// The simulation of owners runs whole nodes (the limiter, the owners and the
// settler of production) in virtual time, over messages and a bucket in memory
// that lose, delay and double what they carry. A seed makes a scenario: nodes,
// a policy, traffic, and what goes wrong: lists of nodes that differ, nodes
// that stand still, crash, drain or lose their connection, answers that get
// lost, writes that are applied late.
//
//	go test ./kvstore -run SimulatedOwners                      100 seeds
//	go test ./kvstore -run SimulatedOwners -owners.seeds 20000  as many as you like
//	go test ./kvstore -run SimulatedOwners -owners.seed 4711 -v one again, with what happened
//
// What a seed fixes is the scenario and the fault of every message. Goroutines
// that are woken at the same virtual instant run in the order that the runtime
// likes, and pauses after conflicts are random: a failure may need -count.
var (
	simOne   = flag.Int64("owners.seed", -1, "run only this seed of the simulation of owners and tell what happens")
	simSeeds = flag.Int64("owners.seeds", 100, "how many seeds of the simulation of owners to run")
	simFirst = flag.Int64("owners.first", 0, "the first seed of the simulation of owners to run")
)

// TestSimulatedOwners: however ownership moves and whatever gets lost, nobody
// is admitted beyond a limit, nobody waits beyond the bound, and the books
// balance.
func TestSimulatedOwners(t *testing.T) {
	if *simOne >= 0 {
		reportSim(t, playSim(t, uint64(*simOne), simTamper{}))
		return
	}
	shards := int64(runtime.GOMAXPROCS(0))
	for shard := range shards {
		t.Run(fmt.Sprintf("shard %d of %d", shard+1, shards), func(t *testing.T) {
			t.Parallel()
			var all simTally
			for seed := *simFirst + shard; seed < *simFirst+*simSeeds; seed += shards {
				w := playSim(t, uint64(seed), simTamper{})
				reportSim(t, w)
				all.add(w.tally())
			}
			t.Log(all)
		})
	}
}

// reportSim tells what a seed broke.
func reportSim(t *testing.T, w *simWorld) {
	t.Helper()
	if *simOne >= 0 {
		t.Logf("%v%s\n%v", w.sc, strings.Join(w.story, "\n"), w.tally())
	}
	if len(w.faults) > 0 {
		t.Errorf("%v  - %s\nreplay: go test ./kvstore -run SimulatedOwners -owners.seed %d",
			w.sc, strings.Join(w.faults, "\n  - "), w.sc.seed)
	}
}

// playSim plays a seed in a bubble of its own.
func playSim(t *testing.T, seed uint64, tm simTamper) *simWorld {
	t.Helper()
	var w *simWorld
	synctest.Test(t, func(*testing.T) {
		w = newSimWorld(newSimScenario(seed), tm)
		w.run()
	})
	return w
}
