package counter

import (
	"testing"
	"time"
)

// busy is a counter with all its slots in use, and the instant of its last
// charge.
func busy(text string) (Counter, []Rate, Instant) {
	rates := mustRates(text)
	var c Counter
	at := t0
	for range 200 {
		at = at.Add(rates[0].Slice())
		c.Charge(rates, 1, at, at)
	}
	return c, rates, at
}

var benchRates = []struct{ name, rates string }{
	{"sliding", "100-S"},
	{"fixed", "100-S fixed"},
	{"token-bucket", "100-S token-bucket"},
	{"three", "100-S,1000-M,10000-H"},
}

// TestReadingAllocatesNothing, and a charge on a clone takes the two allocations
// of the clone.
func TestReadingAllocatesNothing(t *testing.T) {
	for _, bb := range benchRates {
		c, rates, at := busy(bb.rates)
		reads := testing.AllocsPerRun(100, func() {
			n := c.Available(rates, at)
			c.NextAt(rates, at, n+1)
			c.Limiting(rates, at, n+1)
			c.LeaseEnd(rates, at, time.Millisecond)
			c.Expires(rates, at)
			c.FullAt(rates[0], at)
		})
		if reads != 0 {
			t.Errorf("%s: reading takes %v allocations", bb.name, reads)
		}
		writes := testing.AllocsPerRun(100, func() {
			next := c.Clone()
			next.Charge(rates, 1, at.Add(time.Second), at.Add(time.Second+rates[0].Slice()))
		})
		if writes > 2 {
			t.Errorf("%s: clone and charge take %v allocations, want 2", bb.name, writes)
		}
	}
}

func BenchmarkAvailable(b *testing.B) {
	for _, bb := range benchRates {
		b.Run(bb.name, func(b *testing.B) {
			c, rates, at := busy(bb.rates)
			b.ReportAllocs()
			for b.Loop() {
				c.Available(rates, at)
			}
		})
	}
}

func BenchmarkNextAt(b *testing.B) {
	for _, bb := range benchRates {
		b.Run(bb.name, func(b *testing.B) {
			c, rates, at := busy(bb.rates)
			n := rates[0].Capacity()
			b.ReportAllocs()
			for b.Loop() {
				c.NextAt(rates, at, n)
			}
		})
	}
}

// BenchmarkCharge is what an exchange costs: a clone and a charge on it.
func BenchmarkCharge(b *testing.B) {
	for _, bb := range benchRates {
		b.Run(bb.name, func(b *testing.B) {
			c, rates, at := busy(bb.rates)
			b.ReportAllocs()
			for b.Loop() {
				next := c.Clone()
				next.Charge(rates, 1, at, at.Add(10*time.Millisecond))
			}
		})
	}
}

func BenchmarkParseRates(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseRates("10-S,300-H,5000-D"); err != nil {
			b.Fatal(err)
		}
	}
}
