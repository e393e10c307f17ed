package sim

import (
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
)

var (
	oneSeed   = flag.Int64("seed", -1, "run only this seed of the simulation and tell what happens")
	seeds     = flag.Int64("seeds", 200, "how many seeds of the simulation to run")
	firstSeed = flag.Int64("first", 0, "the first seed of the simulation to run")
)

// TestSimulation runs the seeds, as many at a time as there are processors.
func TestSimulation(t *testing.T) {
	if *oneSeed >= 0 {
		t.Log(newScenario(uint64(*oneSeed)))
		runSeed(t, uint64(*oneSeed))
		return
	}
	shards := int64(runtime.GOMAXPROCS(0))
	for shard := range shards {
		t.Run(fmt.Sprintf("shard %d of %d", shard+1, shards), func(t *testing.T) {
			t.Parallel()
			for seed := *firstSeed + shard; seed < *firstSeed+*seeds; seed += shards {
				runSeed(t, uint64(seed))
			}
		})
	}
}

// runSeed runs one seed and reports what it broke.
func runSeed(t *testing.T, seed uint64) {
	t.Helper()
	if w := playSeed(t, seed, tamper{}); len(w.faults) > 0 {
		t.Errorf("%v  - %s\nreplay: go test ./test/sim -run TestSimulation -seed %d", w.sc, strings.Join(w.faults, "\n  - "), seed)
	}
}

// playSeed plays a seed in a bubble of its own.
func playSeed(t *testing.T, seed uint64, tm tamper) *world {
	t.Helper()
	var w *world
	synctest.Test(t, func(*testing.T) {
		w = newWorld(newScenario(seed))
		w.tamper = tm
		w.run()
	})
	return w
}
