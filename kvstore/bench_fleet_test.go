package kvstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// The load of BenchmarkFleet.
const (
	fleetLimit  = 10_000
	fleetPeriod = time.Second
	fleetRate   = 2 * fleetLimit // decisions per second, of all nodes together
	// fleetBatch is how often decisions are begun.
	fleetBatch = time.Millisecond
	// fleetFast is less than any round trip takes: a decision within it did not
	// wait for one.
	fleetFast = 100 * time.Microsecond
)

// BenchmarkFleet is many limiters on three servers, all asked about one hot
// counter of 10,000 per second, with 20,000 decisions per second offered in
// turn to all of them: as many whether there are 3 nodes or 60. It is one run of
// a fixed time, whatever b.N says; the first second warms up and is not
// measured. Decisions begin when they are due, also while others wait. With
// -short, which only shows that it runs, there are few nodes and little time.
//
//	max               most admitted in any span of a period, as a share of the
//	                  limit
//	use               admitted, as a share of what one exact window would admit
//	writes/1000dec    of the counter, to the store
//	conflicts/100wr   writes that another node was faster than
//	p50-us, p99-us    time of a decision
//	fast-p99-us       time of a decision that waited for nothing
//	waited/1000dec    decisions that did
//	degraded/1000dec  decisions without the store
//	late-p99-us       how long after it was due a decision was begun: the load
//	                  generator's own fault, and the machine's
func BenchmarkFleet(b *testing.B) {
	fleets, warmup, measured := []int{3, 9, 30, 60}, time.Second, 5*time.Second
	if testing.Short() {
		fleets, warmup, measured = fleets[:1], 0, time.Second/2
	}
	for _, nodes := range fleets {
		b.Run(fmt.Sprint(nodes), func(b *testing.B) {
			f := newFleet(b, nodes, warmup+measured)
			wrote := f.load(b.Context(), warmup)
			b.StopTimer()
			f.report(b, warmup, wrote)
		})
	}
}

// decided is one decision, in times since the load began.
type decided struct {
	due, begun, answered time.Duration
	admitted, degraded   bool
}

// fleet is nodes that are asked, and what they decided.
type fleet struct {
	members  []*owners
	limiters []*ratelimit.Limiter
	made     []decided
}

func newFleet(b *testing.B, nodes int, span time.Duration) *fleet {
	f := &fleet{
		members: newBed(b, 3).members(b, nodes, ownerConfig{}),
		made:    make([]decided, int(fleetRate*span.Seconds())),
	}
	policy := &ratelimit.Policy{
		Function: ratelimit.Any, Version: ratelimit.Any,
		Total: []counter.Rate{{Units: fleetLimit, Period: fleetPeriod}},
	}
	for _, o := range f.members {
		o.settler.cfg.Attempt = DefaultConfig().AttemptTimeout // a bed's own are patient
		cfg := ratelimit.DefaultConfig()
		cfg.Node = o.node
		l, err := ratelimit.New(o, o.settler.clock, onePolicy{policy}, ratelimit.NewKeyring(), cfg,
			ratelimit.WithNodes(func() int { return nodes }))
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), bedWait)
			defer cancel()
			if err := l.Stop(ctx); err != nil {
				b.Errorf("stop limiter: %v", err)
			}
		})
		f.limiters = append(f.limiters, l)
	}
	return f
}

// written is what all nodes wrote to the store.
type written struct{ writes, conflicts float64 }

func (f *fleet) written() (w written) {
	for _, o := range f.members {
		w.writes += testutil.ToFloat64(o.metrics.writes)
		w.conflicts += testutil.ToFloat64(o.metrics.conflicts)
	}
	return w
}

// load has all decisions made, and returns what was written before warmup was
// over. There are as many callers as can wait at the same time, so that nobody
// waits for a caller.
func (f *fleet) load(ctx context.Context, warmup time.Duration) (wrote written) {
	callers := int(fleetRate * ratelimit.DefaultConfig().Attempt.Seconds())
	due := make(chan int, callers)
	began := time.Now()
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			for i := range due {
				f.decide(ctx, i, began)
			}
		})
	}
	ticker := time.NewTicker(fleetBatch)
	defer ticker.Stop()
	for next, warm := 0, false; next < len(f.made); {
		<-ticker.C
		now := time.Since(began)
		if !warm && now >= warmup {
			wrote, warm = f.written(), true
		}
		for ; next < len(f.made) && dueAt(next) <= now; next++ {
			due <- next
		}
	}
	close(due)
	calling.Wait()
	return wrote
}

// dueAt is when a decision should begin.
func dueAt(i int) time.Duration { return time.Duration(i) * time.Second / fleetRate }

func (f *fleet) decide(ctx context.Context, i int, began time.Time) {
	d := decided{due: dueAt(i), begun: time.Since(began)}
	got, err := f.limiters[i%len(f.limiters)].Decide(ctx, ratelimit.Invocation{Account: "a", Function: "f", Version: "v", Cost: 1})
	d.answered = time.Since(began)
	d.admitted, d.degraded = err == nil && got.Allowed(), got.Degraded
	f.made[i] = d
}

func (f *fleet) report(b *testing.B, warmup time.Duration, before written) {
	var admitted, degraded int
	var took, fast, late []time.Duration
	for _, d := range f.made {
		if d.due < warmup {
			continue
		}
		took, late = append(took, d.answered-d.begun), append(late, d.begun-d.due)
		if d.answered-d.begun < fleetFast {
			fast = append(fast, d.answered-d.begun)
		}
		if d.admitted {
			admitted++
		}
		if d.degraded {
			degraded++
		}
	}
	if most := f.mostInAPeriod(); most > fleetLimit && degraded == 0 {
		b.Errorf("%d admitted in a period, the limit is %d", most, fleetLimit)
	}
	after := f.written()
	writes, conflicts := after.writes-before.writes, after.conflicts-before.conflicts
	per1000 := 1000 / float64(len(took))
	b.ReportMetric(0, "ns/op") // an operation is nothing here
	b.ReportMetric(float64(f.mostInAPeriod())/fleetLimit, "max")
	b.ReportMetric(float64(admitted)/float64(exactly(len(f.made), warmup)), "use")
	b.ReportMetric(writes*per1000, "writes/1000dec")
	b.ReportMetric(100*conflicts/max(1, writes), "conflicts/100wr")
	b.ReportMetric(quantileUs(took, 0.5), "p50-us")
	b.ReportMetric(quantileUs(took, 0.99), "p99-us")
	b.ReportMetric(quantileUs(fast, 0.99), "fast-p99-us")
	b.ReportMetric(float64(len(took)-len(fast))*per1000, "waited/1000dec")
	b.ReportMetric(float64(degraded)*per1000, "degraded/1000dec")
	b.ReportMetric(quantileUs(late, 0.99), "late-p99-us")
}

// mostInAPeriod is how many were certainly admitted in the fullest span of a
// period: they began in it and were answered in it. That is who was answered
// before its end, but for who began before it; a decision that takes longer than
// a period makes it less, never more.
func (f *fleet) mostInAPeriod() (most int) {
	var begun, answered []time.Duration
	for _, d := range f.made {
		if d.admitted {
			begun, answered = append(begun, d.begun), append(answered, d.answered)
		}
	}
	slices.Sort(begun)
	slices.Sort(answered)
	before := 0
	for earlier, start := range begun {
		for before < len(answered) && answered[before] < start+fleetPeriod {
			before++
		}
		most = max(most, before-earlier)
	}
	return most
}

// exactly is how many of so many decisions one exact window would admit after
// warmup.
func exactly(decisions int, warmup time.Duration) (count int) {
	var admitted []time.Duration
	for i := range decisions {
		at := dueAt(i)
		if n := len(admitted); n >= fleetLimit && at-admitted[n-fleetLimit] < fleetPeriod {
			continue
		}
		admitted = append(admitted, at)
		if at >= warmup {
			count++
		}
	}
	return count
}

func quantileUs(took []time.Duration, q float64) float64 {
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	return float64(took[int(q*float64(len(took)))].Nanoseconds()) / 1e3
}
