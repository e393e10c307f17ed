package counter

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// edges are the numbers at which fixed-width arithmetic goes wrong.
var edges = []int64{0, 1, 2, math.MaxUint32, math.MaxUint32 + 1, MaxUnits, int64(MaxPeriod), math.MaxInt64 - 1, math.MaxInt64}

// clamp is b held at the ends of int64.
func clamp(b *big.Int) int64 {
	switch {
	case b.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return math.MaxInt64
	case b.Cmp(big.NewInt(math.MinInt64)) < 0:
		return math.MinInt64
	default:
		return b.Int64()
	}
}

func TestSaturatingArithmetic(t *testing.T) {
	var all []int64
	for _, e := range edges {
		all = append(all, e, -e, math.MinInt64+e)
	}
	for _, a := range all {
		for _, b := range all {
			x, y := big.NewInt(a), big.NewInt(b)
			if got, want := addSat(a, b), clamp(new(big.Int).Add(x, y)); got != want {
				t.Errorf("%d + %d = %d, want %d", a, b, got, want)
			}
			if got, want := subSat(a, b), clamp(new(big.Int).Sub(x, y)); got != want {
				t.Errorf("%d - %d = %d, want %d", a, b, got, want)
			}
			if a < 0 || b < 0 {
				continue
			}
			if got, want := mulSat(a, b), clamp(new(big.Int).Mul(x, y)); got != want {
				t.Errorf("%d * %d = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestWideArithmetic(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	number := func() int64 {
		if rng.IntN(2) == 0 {
			return edges[rng.IntN(len(edges))]
		}
		return rng.Int64() >> rng.IntN(63)
	}
	for range 20_000 {
		a, b, c, d, e := number(), number(), number(), number(), number()
		n := max(1, number())
		x := new(big.Int).Add(new(big.Int).Mul(big.NewInt(a), big.NewInt(b)), big.NewInt(c))
		x.Sub(x, new(big.Int).Mul(big.NewInt(d), big.NewInt(e)))
		if x.Sign() < 0 {
			x.SetInt64(0)
		}
		q, r := new(big.Int).QuoRem(x, big.NewInt(n), new(big.Int))
		wantQ, wantR := clamp(q), r.Int64()
		if !q.IsInt64() {
			wantR = 0
		}
		gotQ, gotR := product(a, b).plus(c).minus(product(d, e)).over(n)
		if gotQ != wantQ || gotR != wantR {
			t.Fatalf("(%d*%d + %d - %d*%d) / %d = %d rest %d, want %d rest %d", a, b, c, d, e, n, gotQ, gotR, wantQ, wantR)
		}
	}
}
