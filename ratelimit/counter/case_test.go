package counter

import (
	"testing"
	"time"
)

// These are cases that users of other limiters ran into, as far as they are
// arithmetic.

// admit spends one unit if it is there.
func admit(c *Counter, rates []Rate, at Instant) bool {
	if c.Available(rates, at) < 1 {
		return false
	}
	c.Charge(rates, 1, at, at)
	return true
}

// Case 10: `10-S,100-M`; 12 in one second, then 8 a second for 15 s: 10 in the
// first second, 100 in the minute, and the answer names the rate that denied.
func TestTwoRatesNameTheOneThatDenied(t *testing.T) {
	rates := mustRates("10-S,100-M")
	const perSecond, perMinute = 0, 1
	var c Counter
	admitted := 0
	for i := range 12 {
		at := t0.Add(time.Duration(i) * 80 * ms)
		if admit(&c, rates, at) {
			admitted++
			continue
		}
		index, next, ok := c.Limiting(rates, at, 1)
		// The slices of 10-S are 1/60 s; what was spent at t0 leaves after 61.
		if want := sliceGone(sliceOf(t0, time.Second), time.Second); index != perSecond || next != want || !ok {
			t.Errorf("call %d: limited by rate %d until %s, want %d until %s", i, index, next.Sub(t0), perSecond, want.Sub(t0))
		}
	}
	if admitted != 10 {
		t.Errorf("%d admitted in the first second, want 10", admitted)
	}
	for second := 1; second <= 15; second++ {
		for i := range 8 {
			at := t0.Add(time.Duration(second)*time.Second + time.Duration(i+1)*120*ms)
			if admit(&c, rates, at) {
				admitted++
				continue
			}
			if index, next, ok := c.Limiting(rates, at, 1); index != perMinute || next != t0.Add(61*time.Second) || !ok {
				t.Errorf("second %d: limited by rate %d until %s, want %d until 61s", second, index, next.Sub(t0), perMinute)
			}
		}
	}
	if admitted != 100 {
		t.Errorf("%d admitted in the minute, want 100", admitted)
	}
	if left := c.AvailableOf(rates[perSecond], t0.Add(20*time.Second)); left != 10 {
		t.Errorf("denied calls were charged to the second: left %d, want 10", left)
	}
}

// Case 15, first half: a token bucket of 3 per second, one call each 100 ms for
// 60 s. A limiter that rounds its refill to milliseconds loses units here.
func TestTokenBucketLosesNothingToRounding(t *testing.T) {
	rates := mustRates("3-S token-bucket burst=3")
	var c Counter
	admitted := 0
	for i := range 600 {
		if admit(&c, rates, t0.Add(time.Duration(i)*100*ms)) {
			admitted++
		}
	}
	if admitted < 182 || admitted > 184 {
		t.Errorf("%d admitted, want 183 ± 1", admitted)
	}
}

// Case 15, second half: 10 per 30 s, burst 10, one call a second: empty after
// about 15 s, then exactly one each 3 s.
func TestTokenBucketSettlesAtItsRate(t *testing.T) {
	rates := mustRates("10/30s token-bucket burst=10")
	var c Counter
	var admitted []int
	firstDenied := -1
	for second := range 120 {
		if admit(&c, rates, t0.Add(time.Duration(second)*time.Second)) {
			admitted = append(admitted, second)
		} else if firstDenied < 0 {
			firstDenied = second
		}
	}
	if firstDenied < 13 || firstDenied > 16 {
		t.Errorf("empty after %d s, want about 15", firstDenied)
	}
	last := firstDenied
	for _, second := range admitted {
		if second < firstDenied {
			continue
		}
		if last != firstDenied && second-last != 3 {
			t.Errorf("admitted at %d s, %d s after the last, want 3", second, second-last)
		}
		last = second
	}
	if last < 115 {
		t.Errorf("nothing was admitted after %d s", last)
	}
}

// A denied call eats nothing of the larger windows (the NVCF limiter charges
// them, and then has 1 of 5 left in the minute instead of 2).
func TestDeniedCallChargesNoOtherRate(t *testing.T) {
	for _, text := range []string{"3-S,5-M", "5-M,3-S", "3-S fixed,5-M fixed"} {
		rates := mustRates(text)
		var c Counter
		for range 3 {
			if !admit(&c, rates, t0) {
				t.Fatalf("%s: one of the first 3 was denied", text)
			}
		}
		if admit(&c, rates, t0) {
			t.Errorf("%s: the 4th was admitted", text)
		}
		if left := c.Available(rates, t0.Add(2*time.Second)); left != 2 {
			t.Errorf("%s: left %d in the minute, want 2", text, left)
		}
	}
}
