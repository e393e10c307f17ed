package counter

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestRateValidate(t *testing.T) {
	tests := []struct {
		name  string
		rate  Rate
		wants []string // one for each fault: field, value, part of the reason
	}{
		{"least", Rate{Period: MinPeriod}, nil},
		{"most", Rate{MaxUnits, MaxPeriod, TokenBucket, MaxUnits}, nil},
		{"zero", Rate{}, []string{"period=0s"}},
		{"negative units", Rate{Units: -5, Period: time.Hour}, []string{"units=-5"}},
		{"too many units", Rate{Units: MaxUnits + 1, Period: time.Hour}, []string{"units=9007199254740993"}},
		{"short", Rate{Units: 1, Period: MinPeriod - 1}, []string{"period=999.999999ms"}},
		{"long", Rate{Units: 1, Period: MaxPeriod + 1}, []string{"period=8784h0m0.000000001s"}},
		{"burst without a bucket", Rate{1, time.Hour, Fixed, 2}, []string{"burst=2"}},
		{"negative burst", Rate{1, time.Hour, TokenBucket, -2}, []string{"burst=-2"}},
		{"unknown algorithm", Rate{1, time.Hour, 3, 0}, []string{"algorithm=algorithm(3)"}},
		{"all at once", Rate{-1, 0, 9, -1}, []string{"units=-1", "period=0s", "algorithm=algorithm(9)", "burst=-1"}},
	}
	for _, tt := range tests {
		err := tt.rate.Validate()
		if (err != nil) != (len(tt.wants) > 0) || (err != nil && !errors.Is(err, ErrRate)) {
			t.Errorf("%s: Validate() = %v", tt.name, err)
			continue
		}
		for _, want := range tt.wants {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not name %q", tt.name, err, want)
			}
		}
		if _, merr := tt.rate.MarshalText(); (merr != nil) != (err != nil) {
			t.Errorf("%s: MarshalText() = %v, Validate() = %v", tt.name, merr, err)
		}
	}
}

func TestRateErrorIsShort(t *testing.T) {
	_, err := ParseRate(strings.Repeat("x", 5000))
	if len(err.Error()) > 200 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
}

func TestCapacity(t *testing.T) {
	tests := []struct {
		rate string
		want int64
	}{
		{"10-S", 10},
		{"10-S fixed", 10},
		{"10-S token-bucket", 10},
		{"10-S token-bucket burst=3", 3},
		{"10-S token-bucket burst=30", 30},
		{"0-S token-bucket burst=30", 0},
	}
	for _, tt := range tests {
		if got := mustRates(tt.rate)[0].Capacity(); got != tt.want {
			t.Errorf("capacity of %s = %d, want %d", tt.rate, got, tt.want)
		}
	}
}

func TestAlgorithmNames(t *testing.T) {
	for _, a := range []Algorithm{Sliding, Fixed, TokenBucket} {
		if got, err := ParseAlgorithm(a.String()); err != nil || got != a {
			t.Errorf("ParseAlgorithm(%q) = %v, %v", a, got, err)
		}
	}
	if _, err := ParseAlgorithm("gcra"); !errors.Is(err, ErrRate) {
		t.Errorf("an unknown algorithm: %v, want ErrRate", err)
	}
}

// TestInvalidRateFailsClosed: a rate that slipped past validation admits nothing
// and breaks nothing.
func TestInvalidRateFailsClosed(t *testing.T) {
	for _, rate := range []Rate{{}, {Units: 5}, {Units: 5, Period: -1}, {Units: -5, Period: time.Hour}, {5, time.Hour, 9, 0}} {
		rates := []Rate{rate}
		var c Counter
		c.Charge(rates, 1, t0, t0)
		c.Post(rates, 1, t0, t0)
		c.Refund(rates, 1, t0, t0)
		c.Credit(rates, 1, t0)
		if !c.Empty() || c.Available(rates, t0) != 0 || c.LeaseEnd(rates, t0, time.Second) > t0.Add(time.Second) {
			t.Errorf("%+v: charged or admitted: %+v", rate, c)
		}
		if _, ok := c.NextAt(rates, t0, 1); ok {
			t.Errorf("%+v: admits one day", rate)
		}
		if at := c.FullAt(rate, t0); at != t0 {
			t.Errorf("%+v: full at %d", rate, at)
		}
	}
}
