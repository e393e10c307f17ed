package counter

import (
	"math/big"
	"testing"
	"time"
)

func TestSlidingHoldsInAnySpan(t *testing.T) {
	eachWorld(t, 400, Sliding, func(w *world) {
		for range 150 {
			w.advance()
			w.editUnits()
			n := w.cost()
			life := []time.Duration{0, 1, w.rate.Slice() / 2, w.rate.Slice()}[w.rng.IntN(4)]
			w.attempt(n, life, w.rng.Int64N(n+1))
			if w.rng.IntN(3) == 0 {
				w.giveBack()
			}
			w.check()
		}
		period := w.rate.Period
		w.spans(func(first, last time.Duration, units int64, largest Rate) bool {
			if last-first > period {
				return false
			}
			if units > largest.Units {
				t.Errorf("%d units between %s and %s, limit %d", units, first, last, largest.Units)
			}
			return true
		})
	})
}

// TestSlidingIsNotTooStrict: what was spent more than a period, a slice and a
// lease ago is never held against anyone.
func TestSlidingIsNotTooStrict(t *testing.T) {
	eachWorld(t, 200, Sliding, func(w *world) {
		w.lag = false
		for range 150 {
			w.advance()
			n := w.cost()
			life := time.Duration(w.rng.Int64N(int64(w.rate.Slice()) + 1))
			w.attempt(n, life, n)
			since := w.true - w.rate.Period - 2*w.rate.Slice()
			var recent int64
			for _, a := range w.admitted {
				if a.at >= since {
					recent += a.units
				}
			}
			if left := w.c.AvailableOf(w.rate, w.clock()); left < w.rate.Units-recent {
				t.Errorf("at %s: left %d of %d, but only %d were spent lately", w.true, left, w.rate.Units, recent)
			}
		}
	})
}

func TestFixedHoldsInEachWindow(t *testing.T) {
	eachWorld(t, 400, Fixed, func(w *world) {
		w.lag = false // the oracle finds the windows by true time
		for range 150 {
			w.advance()
			w.editUnits()
			n := w.cost()
			w.attempt(n, time.Duration(w.rng.Int64N(int64(w.rate.Slice()))), n)
			w.check()
		}
		checkWindows(t, w.admitted, w.rate.Period)
	})
}

// checkWindows walks admissions in the order of their charges: a window opens
// with the first charge that no window holds, and all of it is spent inside.
func checkWindows(t *testing.T, admitted []admission, period time.Duration) {
	t.Helper()
	var closes time.Duration
	var units, limit int64
	for i, a := range admitted {
		if i == 0 || a.charged >= closes {
			closes, units, limit = a.charged+period, 0, 0
		}
		if a.at >= closes {
			t.Errorf("%d units spent at %s, after the close at %s", a.units, a.at, closes)
		}
		units += a.units
		limit = max(limit, a.rate.Units)
		if units > limit {
			t.Errorf("%d units in the window that closes at %s, limit %d", units, closes, limit)
		}
	}
}

func TestTokenBucketHoldsInAnySpan(t *testing.T) {
	t.Run("spent at once", func(t *testing.T) {
		eachWorld(t, 400, TokenBucket, func(w *world) {
			for range 150 {
				w.advance()
				w.editUnits()
				n := w.cost()
				w.attempt(n, 0, n)
				w.check()
			}
			checkBucket(w, 0, 0)
		})
	})
	t.Run("spent within a lease", func(t *testing.T) {
		eachWorld(t, 400, TokenBucket, func(w *world) {
			life := w.rate.Slice()
			for range 150 {
				w.advance()
				w.editUnits()
				n := w.cost()
				w.attempt(n, life, n)
				w.check()
			}
			checkBucket(w, life, 0)
		})
	})
	t.Run("leased and given back", func(t *testing.T) {
		eachWorld(t, 400, TokenBucket, func(w *world) {
			for range 150 {
				w.advance()
				n := w.cost()
				if w.rng.IntN(2) == 0 {
					w.attempt(n, w.rate.Slice(), 0)
				} else {
					w.attempt(n, 0, n)
				}
				if w.rng.IntN(2) == 0 {
					w.giveBack()
				}
				w.check()
			}
			checkBucket(w, 0, w.maxHeld)
		})
	})
}

// checkBucket holds every span to burst + units*(span+life)/period + more, in
// whole numbers.
func checkBucket(w *world, life time.Duration, more int64) {
	w.t.Helper()
	period := big.NewInt(int64(w.rate.Period))
	w.spans(func(first, last time.Duration, units int64, largest Rate) bool {
		got := new(big.Int).Mul(big.NewInt(units), period)
		bound := new(big.Int).Mul(big.NewInt(largest.Burst+more), period)
		drained := new(big.Int).Mul(big.NewInt(largest.Units), big.NewInt(int64(last-first+life)))
		if got.Cmp(bound.Add(bound, drained)) > 0 {
			w.t.Errorf("%d units between %s and %s under %s", units, first, last, largest)
		}
		return true
	})
}
