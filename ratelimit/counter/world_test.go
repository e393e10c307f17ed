package counter

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The oracle keeps the true instant of every single admission and knows nothing
// of slices, windows or levels. True time only goes forward; the clock that the
// counter is shown steps back now and then.

// admission is units spent together, and the rate under which they were charged.
type admission struct {
	charged, at time.Duration // true time
	units       int64
	rate        Rate
}

// world is one random schedule against one counter.
type world struct {
	t    *testing.T
	rng  *rand.Rand
	c    Counter
	rate Rate // in force

	true time.Duration // since t0
	back time.Duration // how far the clock has stepped back, all in all
	lag  bool          // whether it may

	admitted []admission
	leased   []held
	maxHeld  int64 // the most units held at one time
}

// held is the part of a lease that nobody will spend, until it is returned.
type held struct {
	units int64
	until Instant
}

func newWorld(t *testing.T, seed uint64, rate Rate) *world {
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), rate: rate}
	w.lag = w.rng.IntN(2) == 0
	return w
}

// clock is what the counter is told.
func (w *world) clock() Instant { return t0.Add(w.true - w.back) }

// advance lets true time pass: often little, often exactly to an edge.
func (w *world) advance() {
	slice, period := w.rate.Slice(), w.rate.Period
	edge := slice - w.true%slice
	steps := []time.Duration{
		0, 0, 1, slice / 7, edge - 1, edge, edge + 1,
		time.Duration(w.rng.Int64N(int64(slice))), time.Duration(w.rng.Int64N(int64(period))),
		period - slice, period - 1, period, period + 1,
	}
	w.true += steps[w.rng.IntN(len(steps))]
	if w.lag && w.rng.IntN(12) == 0 {
		w.back += time.Duration(w.rng.Int64N(int64(2 * period)))
	}
}

// attempt asks for n units that may be spent for life after the charge. spent of
// them are, at true instants anywhere in the lease; the rest is held.
func (w *world) attempt(n int64, life time.Duration, spent int64) {
	rates := []Rate{w.rate}
	if n > w.c.Available(rates, w.clock()) {
		return
	}
	start := max(w.clock(), w.c.Seen)
	until := start
	if life > 0 {
		until = w.c.LeaseEnd(rates, start, life)
	}
	w.c.Charge(rates, n, w.clock(), until)
	for left := spent; left > 0; {
		part := 1 + w.rng.Int64N(left)
		late := []time.Duration{0, until.Sub(start), time.Duration(w.rng.Int64N(int64(until.Sub(start)) + 1))}
		w.admitted = append(w.admitted, admission{w.true, w.true + late[w.rng.IntN(len(late))], part, w.rate})
		left -= part
	}
	if rest := n - spent; rest > 0 {
		w.leased = append(w.leased, held{rest, until})
	}
	var units int64
	for _, h := range w.leased {
		units += h.units
	}
	w.maxHeld = max(w.maxHeld, units)
}

// giveBack returns what is held of one lease.
func (w *world) giveBack() {
	if len(w.leased) == 0 {
		return
	}
	i := w.rng.IntN(len(w.leased))
	h := w.leased[i]
	w.leased = slices.Delete(w.leased, i, i+1)
	w.c.Refund([]Rate{w.rate}, h.units, h.until, w.clock())
}

// cost is small mostly, and now and then all there is.
func (w *world) cost() int64 {
	most := w.rate.Capacity()
	if most == 0 {
		return 1
	}
	return []int64{1, 1 + w.rng.Int64N(most), most}[w.rng.IntN(3)]
}

func (w *world) check() {
	w.t.Helper()
	if err := w.c.Validate(); err != nil {
		w.t.Fatal(err)
	}
}

// spans calls visit for every span that begins at one admission and ends
// with another, both included, with the largest limits charged under in it.
func (w *world) spans(visit func(first, last time.Duration, units int64, largest Rate) bool) {
	slices.SortFunc(w.admitted, func(a, b admission) int { return int(a.at - b.at) })
	for i, a := range w.admitted {
		var units int64
		largest := a.rate
		for _, b := range w.admitted[i:] {
			units += b.units
			largest.Units = max(largest.Units, b.rate.Units)
			largest.Burst = max(largest.Burst, b.rate.Burst)
			if !visit(a.at, b.at, units, largest) {
				break
			}
		}
	}
}

var oraclePeriods = []time.Duration{time.Second, time.Second + 7, 10 * time.Second, time.Hour, MaxPeriod}

func eachWorld(t *testing.T, worlds uint64, algorithm Algorithm, play func(w *world)) {
	t.Helper()
	admissions := 0
	for seed := range worlds {
		rng := rand.New(rand.NewPCG(seed, 2))
		rate := Rate{Units: 1 + rng.Int64N(20), Period: oraclePeriods[rng.IntN(len(oraclePeriods))], Algorithm: algorithm}
		if algorithm == TokenBucket {
			rate.Burst = 1 + rng.Int64N(20)
		}
		w := newWorld(t, seed, rate)
		play(w)
		if t.Failed() {
			t.Fatalf("seed %d, %s", seed, rate)
		}
		admissions += len(w.admitted)
	}
	if admissions < int(worlds)*10 {
		t.Fatalf("only %d admissions in %d worlds: the property was hardly tried", admissions, worlds)
	}
}

// editUnits puts another limit in force, now and then.
func (w *world) editUnits() {
	if w.rng.IntN(25) != 0 {
		return
	}
	w.rate.Units = w.rng.Int64N(21)
	if w.rate.Algorithm == TokenBucket {
		w.rate.Burst = 1 + w.rng.Int64N(20)
	}
}
