package counter

import (
	"math"
	"math/bits"
)

// forever is the end of time: what saturates, saturates here.
const forever = Instant(math.MaxInt64)

// addSat is a+b, held at the ends of int64 instead of wrapping around: a count
// that wrapped would turn the fullest counter into an empty one.
func addSat(a, b int64) int64 {
	sum := a + b
	switch {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	default:
		return sum
	}
}

// subSat is a-b, held at the ends of int64.
func subSat(a, b int64) int64 {
	if b == math.MinInt64 {
		return addSat(addSat(a, math.MaxInt64), 1)
	}
	return addSat(a, -b)
}

// mulSat is a*b for a, b >= 0, held at the largest int64.
func mulSat(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// wide is an unsigned 128-bit number. Units times nanoseconds need it: 2^53
// units over a year of nanoseconds come to 2^108.
type wide struct{ hi, lo uint64 }

// product is a*b for a, b >= 0.
func product(a, b int64) wide {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	return wide{hi, lo}
}

// plus is w+n for n >= 0. The sums made here stay below 2^127.
func (w wide) plus(n int64) wide {
	lo, carry := bits.Add64(w.lo, uint64(n), 0)
	return wide{w.hi + carry, lo}
}

// minus is w-v, or zero when v is the larger one.
func (w wide) minus(v wide) wide {
	lo, borrow := bits.Sub64(w.lo, v.lo, 0)
	hi, borrow := bits.Sub64(w.hi, v.hi, borrow)
	if borrow != 0 {
		return wide{}
	}
	return wide{hi, lo}
}

// over divides w by n > 0, rounding down, and gives the rest. A quotient past
// the largest int64 is held there, with no rest.
func (w wide) over(n int64) (quotient, rest int64) {
	if w.hi >= uint64(n) {
		return math.MaxInt64, 0
	}
	q, r := bits.Div64(w.hi, w.lo, uint64(n))
	if q > math.MaxInt64 {
		return math.MaxInt64, 0
	}
	return int64(q), int64(r)
}
