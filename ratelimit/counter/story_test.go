package counter

import "testing"

// lastly stands for the smallest story: a limit is used up, and comes back.
func TestLimitIsUsedUpAndComesBack(t *testing.T) {
	rates := []Rate{{Units: 2, Period: MinPeriod}}
	now := InstantOf(Instant(0).Time()).Add(1000 * MinPeriod)
	var c Counter
	if got := c.Available(rates, now); got != 2 {
		t.Fatalf("available at first = %d, want 2", got)
	}
	c.Charge(rates, 2, now, now)
	if got := c.Available(rates, now); got != 0 {
		t.Fatalf("available when used up = %d, want 0", got)
	}
	next, ok := c.NextAt(rates, now, 1)
	if !ok || c.Available(rates, next) != 2 || c.Available(rates, next-1) != 0 {
		t.Fatalf("next = %d, %t: want the exact instant", next, ok)
	}
}
