package kvstore

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// simScenario is all that a seed decides.
type simScenario struct {
	seed     uint64
	nodes    int
	config   ratelimit.Config
	owners   ownerConfig
	settlers settlerConfig
	plan     simPlan
	policy   *ratelimit.Policy
	accounts int
	subjects int
	clockOff time.Duration // the error that every node's clock admits to
	offset   time.Duration // when the scenario begins, past the epoch's grid
	span     time.Duration // how long traffic lasts
	arrivals []simArrival
	acts     []simAct
	// stopFirst: the nodes stop before the last late message arrives.
	stopFirst bool
}

// simArrival is some invocations at one instant.
type simArrival struct {
	at    time.Duration
	node  int
	inv   ratelimit.Invocation
	count int
}

func newSimScenario(seed uint64) simScenario {
	rng := rand.New(rand.NewPCG(seed, 0x6f776e6572))
	sc := simScenario{
		seed:      seed,
		nodes:     2 + rng.IntN(4),
		accounts:  1 + rng.IntN(3),
		subjects:  rng.IntN(3),
		clockOff:  simPick(rng, 0, 0, 200*time.Microsecond, 2*time.Millisecond, 8*time.Millisecond),
		offset:    time.Duration(rng.Int64N(int64(3 * time.Second))),
		span:      time.Duration(1000+rng.IntN(2000)) * time.Millisecond,
		stopFirst: rng.IntN(2) == 0,
	}
	sc.config = newSimConfig(rng)
	sc.owners.InFlight = simPick(rng, 0, 0, 0, 2)
	sc.settlers = settlerConfig{Attempt: sc.config.Attempt / 2, Remember: simPick(rng, 0, 0, 0, 1)}
	sc.plan = newSimPlan(rng, sc.config.Attempt)
	if sc.config.MaxCells < simManyCells {
		// A node that does not keep a cell asks for its counter several times at
		// once, and so has gone on before a second copy arrives.
		sc.plan.Again = 0
	}
	arrivals := 100 + rng.IntN(400)
	sc.policy = newSimPolicy(rng, &sc, arrivals)
	sc.arrivals = newSimArrivals(rng, &sc, arrivals)
	sc.acts = newSimActs(rng, &sc)
	return sc
}

func simPick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// simManyCells is enough for all counters of a scenario.
const simManyCells = 1000

func newSimConfig(rng *rand.Rand) ratelimit.Config {
	millis := func(of ...int) time.Duration { return time.Duration(simPick(rng, of...)) * time.Millisecond }
	cfg := ratelimit.DefaultConfig()
	cfg.SyncInterval = millis(50, 100, 100, 200)
	cfg.LeaseLife = millis(20, 100, 100, 250)
	cfg.Attempt = millis(60, 100, 100, 200)
	cfg.ProbeInterval = millis(50, 250)
	cfg.MaxCells = simPick(rng, 1, simManyCells, simManyCells, simManyCells, simManyCells)
	return cfg
}

// newSimPolicy has one to three tiers that bind for about the load they get.
func newSimPolicy(rng *rand.Rand, sc *simScenario, arrivals int) *ratelimit.Policy {
	p := &ratelimit.Policy{
		Function: "function", Version: ratelimit.Any, Revision: "0",
		Consistency:    simPick(rng, ratelimit.Leased, ratelimit.Leased, ratelimit.Exact, ratelimit.Delayed),
		OnStoreFailure: simPick(rng, ratelimit.FailDeny, ratelimit.FailDeny, ratelimit.FailLocal, ratelimit.FailAllow),
	}
	perSecond := float64(arrivals) / sc.span.Seconds()
	if rng.IntN(3) > 0 {
		p.Account = newSimRates(rng, sc.span, perSecond/float64(sc.accounts))
	}
	if sc.subjects > 0 && rng.IntN(2) == 0 {
		p.Subject = newSimRates(rng, sc.span, perSecond/float64(sc.accounts*sc.subjects))
	}
	if rng.IntN(3) == 0 || len(p.Account)+len(p.Subject) == 0 {
		p.Total = newSimRates(rng, sc.span, perSecond)
	}
	return p
}

// newSimRates are one or two rates that a load of perSecond meets half or
// several times over, and mostly one over a longer time than traffic lasts, by
// which the books can be balanced.
func newSimRates(rng *rand.Rand, span time.Duration, perSecond float64) []counter.Rate {
	var rates []counter.Rate
	if rng.IntN(4) > 0 {
		load := perSecond * span.Seconds()
		rates = append(rates, counter.Rate{Units: max(1, int64(load*simPick(rng, 0.3, 0.7, 1, 2))), Period: time.Minute})
	}
	for range 1 + rng.IntN(2) {
		period := time.Duration(simPick(rng, 1, 1, 2, 5, 60)) * time.Second
		load := perSecond * min(period, span).Seconds()
		r := counter.Rate{
			Units:     max(1, int64(load/simPick(rng, 0.5, 1, 2, 5))),
			Period:    period,
			Algorithm: simPick(rng, counter.Sliding, counter.Sliding, counter.Fixed, counter.TokenBucket),
		}
		if r.Algorithm == counter.TokenBucket && rng.IntN(2) == 0 {
			r.Burst = 1 + rng.Int64N(r.Units)
		}
		rates = append(rates, r)
	}
	return counter.Normalize(rates)
}

// newSimArrivals spreads n invocations over the span; some come in bursts.
func newSimArrivals(rng *rand.Rand, sc *simScenario, n int) []simArrival {
	var list []simArrival
	bursty := rng.Float64() * 0.3
	gap := float64(sc.span) / float64(n)
	for at, left := rng.ExpFloat64()*gap, n; at < float64(sc.span) && left > 0; {
		a := simArrival{at: time.Duration(at), node: rng.IntN(sc.nodes), count: 1}
		if rng.Float64() < bursty {
			a.count = 2 + rng.IntN(20)
		}
		a.inv = ratelimit.Invocation{
			Function: "function", Version: "v1", Cost: simPick(rng, 1, 1, 1, int64(1+rng.IntN(5))),
			Account: fmt.Sprintf("account-%d", rng.IntN(sc.accounts)),
		}
		if sc.subjects > 0 && rng.IntN(5) > 0 {
			a.inv.Subject = fmt.Sprintf("subject-%d", rng.IntN(sc.subjects))
		}
		list = append(list, a)
		left -= a.count
		at += rng.ExpFloat64() * gap * float64(a.count)
	}
	return list
}

// rates are those of one tier.
func (sc *simScenario) rates(tier ratelimit.Tier) []counter.Rate {
	switch tier {
	case ratelimit.Subject:
		return sc.policy.Subject
	case ratelimit.Account:
		return sc.policy.Account
	default:
		return sc.policy.Total
	}
}

// tiersOf are those that apply to an invocation.
func (sc *simScenario) tiersOf(inv ratelimit.Invocation) []ratelimit.Tier {
	var tiers []ratelimit.Tier
	for _, tier := range []ratelimit.Tier{ratelimit.Subject, ratelimit.Account, ratelimit.Total} {
		if len(sc.rates(tier)) > 0 && (tier != ratelimit.Subject || inv.Subject != "") {
			tiers = append(tiers, tier)
		}
	}
	return tiers
}

// names are those of all nodes.
func (sc *simScenario) names() []string {
	var names []string
	for i := range sc.nodes {
		names = append(names, simName(i))
	}
	return names
}

func simName(i int) string { return fmt.Sprintf("node-%d", i) }

// String tells the scenario in a few lines.
func (sc simScenario) String() string {
	var b strings.Builder
	p := sc.policy
	fmt.Fprintf(&b, "seed %d: nodes=%d span=%v clocks±%v inflight=%d remember=%d stopFirst=%v\n",
		sc.seed, sc.nodes, sc.span, sc.clockOff, sc.owners.InFlight, sc.settlers.Remember, sc.stopFirst)
	fmt.Fprintf(&b, "  config: sync=%v attempt=%v lease=%v probe=%v cells=%d\n",
		sc.config.SyncInterval, sc.config.Attempt, sc.config.LeaseLife, sc.config.ProbeInterval, sc.config.MaxCells)
	fmt.Fprintf(&b, "  policy: %v, %v: subject %v account %v total %v\n", p.Consistency, p.OnStoreFailure, p.Subject, p.Account, p.Total)
	fmt.Fprintf(&b, "  messages: %+v\n", sc.plan)
	for _, a := range sc.acts {
		fmt.Fprintf(&b, "  %v\n", a)
	}
	return b.String()
}
