package counter

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// mixes are lists of rates that properties are tried on.
var mixes = []string{
	"7-S",
	"10-S,100-M,1000-H",
	"5/7s fixed",
	"3-S token-bucket burst=5",
	"9007199254740992/366d token-bucket burst=9007199254740992",
	"12/1000000007ns,30/10s fixed,11/3s token-bucket",
	"20-M,15-M fixed,9-M token-bucket burst=18",
}

// eachCounter plays random schedules, and hands over the counter between deeds.
func eachCounter(t *testing.T, visit func(rng *rand.Rand, rates []Rate, c Counter, at Instant)) {
	t.Helper()
	for i, mix := range mixes {
		rates := mustRates(mix)
		for seed := range uint64(40) {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			c, at := Counter{}, t0
			for range 60 {
				at = at.Add(someSpan(rng, rates))
				playOne(rng, &c, rates, at)
				visit(rng, rates, c, at.Add(someSpan(rng, rates)))
				if t.Failed() {
					t.Fatalf("rates %s, seed %d: %+v", mix, seed, c)
				}
			}
		}
	}
}

// someSpan is mostly of the order of one unit of one of the rates.
func someSpan(rng *rand.Rand, rates []Rate) time.Duration {
	r := rates[rng.IntN(len(rates))]
	per := int64(r.Period)/max(1, r.Capacity()) + 1
	return []time.Duration{
		0, 1, time.Duration(rng.Int64N(per)), time.Duration(rng.Int64N(3 * per)), r.Slice(), time.Duration(rng.Int64N(int64(r.Period))),
	}[rng.IntN(6)]
}

// playOne does one random deed, now and then more than the rates allow.
func playOne(rng *rand.Rand, c *Counter, rates []Rate, at Instant) {
	n := 1 + rng.Int64N(rates[rng.IntN(len(rates))].Capacity())
	until := c.LeaseEnd(rates, at, time.Duration(rng.Int64N(int64(time.Second))))
	switch rng.IntN(8) {
	case 0:
		c.Refund(rates, n, at, at)
	case 1:
		c.Post(rates, n, at.Add(-someSpan(rng, rates)), at)
	case 2:
		c.Credit(rates, max(1, n/3), at)
	default:
		c.Charge(rates, n, at, until)
	}
}

func TestNextAtIsExact(t *testing.T) {
	waited := 0
	eachCounter(t, func(rng *rand.Rand, rates []Rate, c Counter, at Instant) {
		n := 1 + rng.Int64N(rates[rng.IntN(len(rates))].Capacity()+1)
		next, ok := c.NextAt(rates, at, n)
		if !ok {
			checkNever(t, c, rates, at, n)
			return
		}
		if left := c.Available(rates, next); left < n {
			t.Errorf("%d units promised at %s, left %d", n, next.Sub(t0), left)
		}
		if next <= max(at, c.Seen) {
			return
		}
		waited++
		if left := c.Available(rates, next-1); left >= n {
			t.Errorf("%d units promised at %s, left %d a nanosecond earlier", n, next.Sub(t0), left)
		}
		for range 4 {
			early := at + Instant(rng.Int64N(int64(next-at)))
			if left := c.Available(rates, early); left >= n {
				t.Errorf("%d units promised at %s, left %d at %s", n, next.Sub(t0), left, early.Sub(t0))
			}
		}
	})
	if waited < 1000 {
		t.Errorf("only %d waits were tried", waited)
	}
}

// checkNever: not now, and not when all that was ever spent is over.
func checkNever(t *testing.T, c Counter, rates []Rate, at Instant, n int64) {
	t.Helper()
	end := max(at, c.Expires(rates, at)) + 1
	if c.Available(rates, at) >= n || c.Available(rates, end) >= n {
		t.Errorf("%d units are available, and were said never to be", n)
	}
	for _, r := range rates {
		if n > r.Capacity() {
			return
		}
	}
	t.Errorf("%d units are within every rate, and were said never to be available", n)
}

func TestLimitingNamesTheLastToAdmit(t *testing.T) {
	eachCounter(t, func(rng *rand.Rand, rates []Rate, c Counter, at Instant) {
		n := 1 + rng.Int64N(rates[rng.IntN(len(rates))].Capacity()+1)
		i, next, ok := c.Limiting(rates, at, n)
		switch {
		case i < 0:
			if !ok || c.Available(rates, at) < n {
				t.Errorf("no rate denies %d, left %d", n, c.Available(rates, at))
			}
		case !ok:
			if n <= rates[i].Capacity() {
				t.Errorf("rate %d admits %d one day", i, n)
			}
		default:
			if left := c.AvailableOf(rates[i], next-1); left >= n || c.AvailableOf(rates[i], next) < n {
				t.Errorf("rate %d is not the one that denies %d until %s", i, n, next.Sub(t0))
			}
		}
	})
}

// TestDenialChangesNothing: all that a denial needs leaves the counter alone,
// down to the memory of its slots.
func TestDenialChangesNothing(t *testing.T) {
	denied := 0
	eachCounter(t, func(_ *rand.Rand, rates []Rate, c Counter, at Instant) {
		before := c.Clone()
		n := c.Available(rates, at) + 1
		_, next, ok := c.Limiting(rates, at, n)
		if ok && next == max(at, c.Seen) {
			t.Errorf("%d units are available, of %d", n, n-1)
		}
		c.Expires(rates, at)
		c.LeaseEnd(rates, at, time.Second)
		for _, r := range rates {
			c.FullAt(r, at)
		}
		if !c.Equal(before) {
			t.Errorf("before %+v, after %+v", before, c)
		}
		denied++
	})
	if denied == 0 {
		t.Error("nothing was denied")
	}
}

// TestChargeThenRefundIsTheIdentity, as long as the slice is in the ring, nothing
// drained in between and nothing was credited.
func TestChargeThenRefundIsTheIdentity(t *testing.T) {
	for i, mix := range mixes {
		rates := mustRates(mix)
		rng := rand.New(rand.NewPCG(7, uint64(i)))
		c, at := Counter{}, t0
		for range 400 {
			at = at.Add(someSpan(rng, rates))
			c.Prune(rates, at)
			drainTo(&c, rates, at)
			dropOver(&c, at)
			before := c.Clone()
			n := 1 + rng.Int64N(rates[0].Capacity())
			until := c.LeaseEnd(rates, at, time.Duration(rng.Int64N(int64(time.Second))))
			c.Charge(rates, n, at, until)
			if c.Equal(before) {
				t.Fatalf("%s: a charge of %d changed nothing", mix, n)
			}
			for back := n; back > 0; { // in any number of parts
				part := 1 + rng.Int64N(back)
				c.Refund(rates, part, until, at)
				back -= part
			}
			if !c.Equal(before) {
				t.Fatalf("%s: before %+v, after %+v", mix, before, c)
			}
			c.Charge(rates, n, at, until)
		}
	}
}

// dropOver drops the fixed windows that are over and only kept for late posts: a
// charge opens them anew, and its refund leaves them closed.
func dropOver(c *Counter, at Instant) {
	c.Windows = slices.DeleteFunc(c.Windows, func(w Window) bool {
		return w.Algorithm == Fixed && !w.isOpen(at)
	})
}

// drainTo writes the levels of the token buckets down as of at: a charge does
// the same, and a refund cannot undo that.
func drainTo(c *Counter, rates []Rate, at Instant) {
	for _, r := range rates {
		if w := c.find(r); w != nil && r.Algorithm == TokenBucket {
			w.takeBucket(r, 0, at)
		}
	}
	c.Prune(rates, at)
}

// TestRefundInTheRing: the sliding part of the identity holds at any later
// instant while the slice of the charge still counts.
func TestRefundInTheRing(t *testing.T) {
	rates := mustRates("50-M")
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		var c Counter
		for range rng.IntN(20) {
			c.Charge(rates, 1, t0.Add(time.Duration(rng.Int64N(int64(time.Minute)))), 0)
		}
		at := max(c.Seen, t0)
		until := at.Add(time.Duration(rng.Int64N(int64(time.Second))))
		later := at.Add(time.Duration(rng.Int64N(int64(61 * time.Second))))
		without := c.Clone()
		without.Prune(rates, later)
		c.Charge(rates, 9, at, until)
		c.Refund(rates, 9, until, later)
		if !c.Equal(without) {
			t.Fatalf("at %s: %+v, without the charge %+v", later.Sub(at), c, without)
		}
	}
}
