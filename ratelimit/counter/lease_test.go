package counter

import (
	"testing"
	"time"
)

func TestLeaseEnd(t *testing.T) {
	const life = 100 * ms
	tests := []struct {
		name, rates string
		spent       time.Duration // one unit, before the lease; never: none
		at, life    time.Duration
		want        time.Duration
	}{
		{"its life", "10-M", never, 250 * ms, life, 350 * ms},
		{"into the next slice", "10-M", never, 950 * ms, life, 1050 * ms},
		{"no longer than a slice", "60-S", never, 0, life, 16_666_667},
		{"the shortest slice of all", "60-S,10-M,10-H", never, 0, life, 16_666_667},
		{"not past a window that is open", "10-S fixed", 0, 950 * ms, life, time.Second - 1},
		{"nor past one that it would open", "10-S fixed", 0, time.Second, 5 * time.Second, 2*time.Second - 1},
		{"nor past one that nobody opened", "10-S fixed", never, 0, 5 * time.Second, time.Second - 1},
		{"a bucket has no edge", "10-S token-bucket", 0, 250 * ms, life, 350 * ms},
		{"all together", "10-M,10-S fixed,1-S token-bucket", 0, 990 * ms, life, time.Second - 1},
		{"exact: the slice", "10-M", never, 250 * ms, 0, time.Second - 1},
		{"exact: the shortest slice", "10-M,10-S", never, 0, 0, 16_666_667 - 1 - offset(time.Second)},
		{"exact: the window", "10-S fixed", 0, 250 * ms, 0, time.Second - 1},
		{"exact: the window, nobody opened", "10-S fixed", never, 250 * ms, 0, 1250*ms - 1},
		{"exact: the earlier of both", "10-M,10-S fixed", 500 * ms, 900 * ms, 0, time.Second - 1},
		{"exact: a bucket", "10-S token-bucket", 0, 250 * ms, 0, 250 * ms},
		{"exact: a negative life", "10-S token-bucket", 0, 250 * ms, -life, 250 * ms},
		{"from the newest change on", "10-M", 10 * time.Second, 0, life, 10*time.Second + life},
	}
	for _, tt := range tests {
		var c Counter
		rates := mustRates(tt.rates)
		if tt.spent != never {
			c.Charge(rates, 1, t0.Add(tt.spent), 0)
		}
		if end := c.LeaseEnd(rates, t0.Add(tt.at), tt.life); end != t0.Add(tt.want) {
			t.Errorf("%s: ends at %s, want %s", tt.name, end.Sub(t0), tt.want)
		}
	}
}

// offset is how far t0 is into a slice of the period, which is not 0 when 60
// does not divide it.
func offset(period time.Duration) time.Duration {
	return time.Duration(int64(t0) % sliceLen(period))
}

func TestSliceEdges(t *testing.T) {
	r := mustRates("10-M")[0]
	if r.Slice() != time.Second {
		t.Errorf("a slice of %s is %s", r, r.Slice())
	}
	for _, at := range []Instant{t0, t0 + 1, t0.Add(time.Second - 1)} {
		if end := SliceEnd(r, at); end != t0.Add(time.Second-1) {
			t.Errorf("the slice of %s ends at %s", at.Sub(t0), end.Sub(t0))
		}
	}
	if end := SliceEnd(Rate{}, t0); end != t0 {
		t.Errorf("the slice of no rate ends at %d", end)
	}
	tests := []struct {
		rates string
		want  time.Duration
	}{
		{"10-H,10-M", time.Second},
		{"10-S fixed,10-H", time.Minute},
		{"10-S fixed,1-S token-bucket", 0},
		{"10-S", 16_666_667},
	}
	for _, tt := range tests {
		if got := ShortestSlice(mustRates(tt.rates)); got != tt.want {
			t.Errorf("shortest slice of %s = %s, want %s", tt.rates, got, tt.want)
		}
	}
}

func TestFullAt(t *testing.T) {
	tests := []struct {
		rate string
		do   deed
		want time.Duration
	}{
		{"10-M", look, 0},
		{"10-M", spend(1), 61 * time.Second},
		{"10-M fixed", spend(1), time.Minute},
		{"10-S token-bucket burst=20", spend(3), 300 * ms},
		{"10-M", grant(3), 0},
		{"0-M", spend(3), 0},
	}
	for _, tt := range tests {
		s := &story{rates: mustRates(tt.rate)}
		tt.do(s, t0)
		if got := s.c.FullAt(s.rates[0], t0); got != t0.Add(tt.want) {
			t.Errorf("%s is full at %s, want %s", tt.rate, got.Sub(t0), tt.want)
		}
	}
}
