package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// scenario is all that a seed decides.
type scenario struct {
	seed uint64
	// calm: nothing is lost and nobody dies, so that the books must balance to
	// the unit.
	calm      bool
	nodes     int
	config    ratelimit.Config
	plan      storetest.Plan
	latency   time.Duration // of every message, each way, at most
	clockOff  time.Duration // the error that every node's clock admits to
	offset    time.Duration // when the scenario begins, past the epoch's grid
	span      time.Duration // how long traffic lasts
	functions []function
	arrivals  []arrival
	acts      []act
	stopFirst bool // nodes stop before the counters are left alone
}

// function has one policy after another; later ones come into force by an act.
type function struct {
	name     string
	accounts int
	subjects int
	policies []*ratelimit.Policy
}

// arrival is some invocations at one instant.
type arrival struct {
	at       time.Duration
	node     int
	function int
	inv      ratelimit.Invocation
	count    int
	patience time.Duration // 0: as long as it takes
}

func newScenario(seed uint64) scenario {
	rng := rand.New(rand.NewPCG(seed, 0x68656164))
	sc := scenario{
		seed:      seed,
		calm:      rng.IntN(3) == 0,
		nodes:     1 + rng.IntN(5),
		offset:    time.Duration(rng.Int64N(int64(3 * time.Second))),
		span:      time.Duration(1500+rng.IntN(4500)) * time.Millisecond,
		latency:   pick(rng, 0, 100*time.Microsecond, time.Millisecond, 3*time.Millisecond),
		clockOff:  pick(rng, 0, 0, 200*time.Microsecond, 2*time.Millisecond, 8*time.Millisecond),
		stopFirst: rng.IntN(2) == 0,
	}
	sc.config = newConfig(rng)
	if sc.calm {
		sc.config.MaxInFlight = 256 // nobody waits for a worker
	}
	sc.plan = newPlan(rng, sc.calm, sc.config.Attempt)
	arrivals := 150 + rng.IntN(900)
	functions := 1 + rng.IntN(2)
	for i := range functions {
		sc.functions = append(sc.functions, newFunction(rng, i, sc.span, arrivals/functions))
	}
	sc.arrivals = newArrivals(rng, &sc, arrivals)
	sc.acts = newActs(rng, &sc)
	if !sc.calm {
		sc.plan.Forgotten = pick(rng, 0, 0, 0.1, 0.5)
	}
	return sc
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// millis picks a number of milliseconds.
func millis(rng *rand.Rand, of ...int) time.Duration {
	return time.Duration(pick(rng, of...)) * time.Millisecond
}

func newConfig(rng *rand.Rand) ratelimit.Config {
	cfg := ratelimit.DefaultConfig()
	cfg.SyncInterval = millis(rng, 20, 50, 100, 100, 200)
	cfg.Attempt = millis(rng, 50, 100, 100)
	cfg.LeaseLife = millis(rng, 20, 100, 100, 250)
	cfg.MaxCells = pick(rng, 1, 3, 1000, 1000, 1000)
	cfg.IdleAfter = max(cfg.SyncInterval, millis(rng, 100, 500, 2000, 60000))
	cfg.MaxInFlight = pick(rng, 1, 4, 256)
	cfg.ProbeInterval = millis(rng, 50, 250, 500)
	return cfg
}

// newPlan: on a calm day answers may be slow, but never too slow.
func newPlan(rng *rand.Rand, calm bool, attempt time.Duration) storetest.Plan {
	p := storetest.Plan{
		Slow:       rng.Float64() * 0.2,
		Conflicted: rng.Float64() * 0.3,
		MaxDelay:   attempt / 8,
	}
	if calm {
		return p
	}
	if rng.IntN(2) == 0 {
		p.MaxDelay = attempt * 2
	}
	if rng.IntN(4) > 0 {
		p.Refused = rng.Float64() * 0.10
		p.Lost = rng.Float64() * 0.06
		p.LateShare = rng.Float64() * 0.06
		p.LostAnswers = rng.Float64() * 0.10
		p.MaxLate = time.Duration(rng.Int64N(int64(2 * time.Second)))
	}
	return p
}

// newArrivals spreads n invocations over the span; some come in bursts.
func newArrivals(rng *rand.Rand, sc *scenario, n int) []arrival {
	var list []arrival
	bursty := rng.Float64() * 0.2
	costly := pick(rng, 0, 0, 0.1, 0.4)
	gap := float64(sc.span) / float64(n)
	for at, left := rng.ExpFloat64()*gap, n; at < float64(sc.span) && left > 0; {
		a := arrival{at: time.Duration(at), node: rng.IntN(sc.nodes), function: rng.IntN(len(sc.functions)), count: 1}
		if rng.Float64() < bursty {
			a.count = 2 + rng.IntN(20)
		}
		if rng.IntN(50) == 0 {
			a.patience = time.Duration(1+rng.IntN(60)) * time.Millisecond
		}
		a.inv = newInvocation(rng, &sc.functions[a.function], costly)
		list = append(list, a)
		left -= a.count
		at += rng.ExpFloat64() * gap * float64(a.count)
	}
	return list
}

func newInvocation(rng *rand.Rand, f *function, costly float64) ratelimit.Invocation {
	inv := ratelimit.Invocation{
		Function: f.name, Version: pick(rng, "v1", "v2"), Cost: 1,
		Account: fmt.Sprintf("account-%d", rng.IntN(f.accounts)),
	}
	if f.subjects > 0 && rng.IntN(5) > 0 {
		inv.Subject = fmt.Sprintf("subject-%d", rng.IntN(f.subjects))
	}
	if rng.Float64() < costly {
		inv.Cost = int64(rng.IntN(6))
	}
	return inv
}

// String tells the scenario in a few lines.
func (sc scenario) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: calm=%v nodes=%d span=%v latency=%v clocks±%v stopFirst=%v\n",
		sc.seed, sc.calm, sc.nodes, sc.span, sc.latency, sc.clockOff, sc.stopFirst)
	fmt.Fprintf(&b, "  config: sync=%v attempt=%v lease=%v cells=%d idle=%v inflight=%d probe=%v\n",
		sc.config.SyncInterval, sc.config.Attempt, sc.config.LeaseLife, sc.config.MaxCells,
		sc.config.IdleAfter, sc.config.MaxInFlight, sc.config.ProbeInterval)
	fmt.Fprintf(&b, "  network: %+v\n", sc.plan)
	for _, f := range sc.functions {
		for i, p := range f.policies {
			fmt.Fprintf(&b, "  %s/%d: %v, %v: subject %v account %v %v total %v\n",
				f.name, i, p.Consistency, p.OnStoreFailure, p.Subject, p.Account, p.Overrides, p.Total)
		}
	}
	for _, a := range sc.acts {
		fmt.Fprintf(&b, "  %v\n", a)
	}
	return b.String()
}
