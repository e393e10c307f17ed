package counter

import (
	"errors"
	"math"
	"testing"
	"time"
)

func TestExpiresIsTheLastInstantThatMatters(t *testing.T) {
	tests := []struct {
		name, rates string
		do          deed
		want        time.Duration // after t0; never: nothing matters
	}{
		{"nothing spent", "10-M", look, never},
		{"sliding", "10-M", spend(1), 61*time.Second - 1},
		{"leased ahead", "10-M", lease(1, 1500*ms), 62*time.Second - 1},
		{"fixed", "10-M fixed", spend(1), time.Minute - 1},
		{"token bucket", "10-S token-bucket", spend(3), 300*ms - 1},
		{"token bucket, third of a ns", "3-S token-bucket", spend(1), 333_333_333},
		{"the longest of several", "10-S,10-M,10-H", spend(1), 61*time.Minute - 1},
		{"given back", "10-M fixed", func(s *story, at Instant) { spend(2)(s, at); giveBack(2, 0)(s, at) }, never},
		{"rate taken out", "10-H", func(s *story, at Instant) { spend(2)(s, at); edit("5-S")(s, at) }, 61*time.Minute - 1},
		{"bucket taken out", "10-S token-bucket", func(s *story, at Instant) { spend(2)(s, at); edit("5-S")(s, at) }, time.Second - 1},
		{"bucket that drains no more", "10-S token-bucket", func(s *story, at Instant) { spend(2)(s, at); edit("0-S token-bucket")(s, at) }, time.Second - 1},
	}
	for _, tt := range tests {
		s := &story{rates: mustRates(tt.rates)}
		tt.do(s, t0)
		got := s.c.Expires(s.rates, t0)
		if tt.want == never {
			if got != 0 {
				t.Errorf("%s: expires at %s, want never", tt.name, got.Sub(t0))
			}
			continue
		}
		if got != t0.Add(tt.want) {
			t.Errorf("%s: expires at %s, want %s", tt.name, got.Sub(t0), tt.want)
		}
		if s.c.Expires(s.rates, got) != got || s.c.Expires(s.rates, got+1) != 0 {
			t.Errorf("%s: its expiry moves as time goes on", tt.name)
		}
		after := s.c.Clone()
		after.Prune(s.rates, got+1)
		for _, r := range s.rates {
			if free := after.AvailableOf(r, got+1); free != r.Capacity() {
				t.Errorf("%s: %d of %s available after its expiry", tt.name, free, r)
			}
		}
		// Kept for late posts, and no longer than that.
		after.Prune(s.rates, got.Add(367*24*time.Hour))
		if !after.Empty() {
			t.Errorf("%s: still there long after its expiry: %+v", tt.name, after)
		}
	}
}

func TestPruneBoundsTheWindows(t *testing.T) {
	var c Counter
	for i := range 40 { // an operator who edits the period again and again
		c.Charge([]Rate{{Units: 5, Period: time.Hour + time.Duration(i)}}, 1, t0, t0)
	}
	if len(c.Windows) != MaxWindows {
		t.Fatalf("%d windows, want %d", len(c.Windows), MaxWindows)
	}
	if oldest := c.Windows[0].Period - time.Hour; oldest != 40-MaxWindows {
		t.Errorf("the oldest window kept is %d, want %d", oldest, 40-MaxWindows)
	}
	// The rate in force is kept however old it is.
	first := []Rate{{Units: 5, Period: c.Windows[0].Period}}
	c.Charge(append(first, Rate{Units: 5, Period: time.Minute}), 1, t0, t0)
	if left := c.Available(first, t0); left != 3 || len(c.Windows) != MaxWindows {
		t.Errorf("left %d in %d windows, want 3 in %d", left, len(c.Windows), MaxWindows)
	}
}

func TestMutationDropsWhatLeftTheRing(t *testing.T) {
	rates := mustRates("1000-M")
	var c Counter
	for i := range 500 {
		c.Charge(rates, 1, t0.Add(time.Duration(i)*time.Second), 0)
	}
	if n := len(c.Windows[0].Slots); n != Slices+1 {
		t.Errorf("%d slots, want %d", n, Slices+1)
	}
}

func TestNothingIsDoneForNothing(t *testing.T) {
	rates := mustRates("5-S,5-M fixed,5-H token-bucket")
	for _, n := range []int64{0, -1, math.MinInt64} {
		var c Counter
		c.Charge(rates, n, t0, t0)
		c.Post(rates, n, t0, t0)
		c.Refund(rates, n, t0, t0)
		c.Credit(rates, n, t0)
		if !c.Equal(Counter{}) {
			t.Errorf("%d units: %+v", n, c)
		}
		if next, ok := c.NextAt(rates, t0, n); !ok || next != t0 {
			t.Errorf("%d units are there at %d, %t", n, next, ok)
		}
	}
}

func TestRefundOfWhatWasNeverCharged(t *testing.T) {
	rates := mustRates("5-S,5-M fixed,5-H token-bucket")
	var c Counter
	c.Refund(rates, 5, t0, t0)
	if !c.Empty() || len(c.Windows) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestNoRatesNoLimit(t *testing.T) {
	var c Counter
	if left := c.Available(nil, t0); left != math.MaxInt64 {
		t.Errorf("left %d", left)
	}
	if next, ok := c.NextAt(nil, t0, math.MaxInt64); !ok || next != t0 {
		t.Errorf("next %d, %t", next, ok)
	}
}

func TestCloneSharesNothing(t *testing.T) {
	rates := mustRates("100-S,100-M,100-H fixed,100-D token-bucket")
	var c Counter
	for i := range 5 {
		c.Charge(rates, 3, t0.Add(time.Duration(i)*200*ms), 0)
	}
	kept := c.Clone()
	if !kept.Equal(c) {
		t.Fatalf("clone %+v of %+v", kept, c)
	}
	again, other := c.Clone(), c.Clone()
	for _, d := range []*Counter{&c, &other} {
		for i := range 10 {
			d.Charge(rates, 1, t0.Add(time.Duration(5+i)*200*ms), 0)
			d.Refund(rates, 2, t0.Add(time.Duration(i)*200*ms), 0)
		}
	}
	if !c.Equal(other) {
		t.Errorf("the same deeds on a clone: %+v, on its original: %+v", other, c)
	}
	c.Reset()
	if !kept.Equal(again) {
		t.Errorf("a clone changed with its original: %+v, want %+v", again, kept)
	}
	if c.Equal(kept) || !c.Empty() || c.Seen != t0.Add(14*200*ms) {
		t.Errorf("after a reset: %+v", c)
	}
}

// TestSumsSaturate: a count that wrapped around would make the fullest counter an
// empty one.
func TestSumsSaturate(t *testing.T) {
	rates := mustRates("9007199254740992-S,5/366d fixed,9007199254740992/366d token-bucket")
	var c Counter
	for range 5 {
		c.Charge(rates, math.MaxInt64, t0, t0)
		c.Charge(rates, math.MaxInt64, t0, t0.Add(30*ms))
		for _, r := range rates {
			if left := c.AvailableOf(r, t0); left != 0 {
				t.Errorf("%s: left %d", r, left)
			}
		}
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Credit(rates, math.MaxInt64, t0)
	c.Credit(rates, math.MaxInt64, t0)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	if left := c.AvailableOf(rates[1], t0); left < MaxUnits {
		t.Errorf("after a credit of all there is: left %d", left)
	}
	late := forever - 5
	c.Charge(rates, 1, late, late)
	if next, ok := c.NextAt(rates, late, MaxUnits); ok && next < late {
		t.Errorf("next %d before %d", next, late)
	}
	if end := c.LeaseEnd(rates, late, time.Hour); end < late {
		t.Errorf("lease ends %d before %d", end, late)
	}
	if end := SliceEnd(rates[0], forever); end < late {
		t.Errorf("slice ends at %d", end)
	}
}

func TestValidateRefusesWhatCannotBe(t *testing.T) {
	slots := func(s ...Slot) Window { return Window{Period: time.Minute, Slots: s} }
	tests := map[string][]Window{
		"period":               {{Slots: []Slot{{1, 1}}}},
		"period too long":      {{Period: MaxPeriod + 1, Slots: []Slot{{1, 1}}}},
		"algorithm":            {{Period: time.Minute, Algorithm: 3}},
		"twice":                {slots(Slot{1, 1}), slots(Slot{2, 1})},
		"slots out of order":   {slots(Slot{2, 1}, Slot{1, 1})},
		"slot twice":           {slots(Slot{2, 1}, Slot{2, 1})},
		"empty slot":           {slots(Slot{2, 0})},
		"slot before time":     {slots(Slot{-1, 1})},
		"slot after time":      {slots(Slot{math.MaxInt64, 1})},
		"sliding and owing":    {{Period: time.Minute, Slots: []Slot{{1, 1}}, Opened: 1, Owed: 1}},
		"fixed with slots":     {{Period: time.Minute, Algorithm: Fixed, Slots: []Slot{{1, 1}}}},
		"closed and owing":     {{Period: time.Minute, Algorithm: Fixed, Owed: 1}},
		"open, owing nothing":  {{Period: time.Minute, Algorithm: Fixed, Opened: 1}},
		"opened before time":   {{Period: time.Minute, Algorithm: Fixed, Opened: -1, Owed: 1}},
		"opened before closed": {{Period: time.Minute, Algorithm: Fixed, Opened: 1, Owed: 1, Part: 2}},
		"bucket below empty":   {{Period: time.Minute, Algorithm: TokenBucket, Opened: 1, Owed: -1}},
		"bucket never":         {{Period: time.Minute, Algorithm: TokenBucket, Owed: 1}},
		"bucket with slots":    {{Period: time.Minute, Algorithm: TokenBucket, Slots: []Slot{{1, 1}}}},
		"part above the whole": {{Period: time.Minute, Algorithm: TokenBucket, Opened: 1, Part: int64(time.Minute)}},
		"opened after seen":    {{Period: time.Minute, Algorithm: Fixed, Opened: 2, Owed: 1}},
		"part below nothing":   {{Period: time.Minute, Algorithm: TokenBucket, Opened: 1, Owed: 1, Part: -1}},
	}
	for name, windows := range tests {
		if err := (Counter{Seen: 1, Windows: windows}).Validate(); !errors.Is(err, ErrState) {
			t.Errorf("%s: %v, want ErrState", name, err)
		}
	}
	if err := (Counter{Seen: -1}).Validate(); !errors.Is(err, ErrState) {
		t.Errorf("seen before the epoch: %v", err)
	}
	if err := (Counter{}).Validate(); err != nil {
		t.Errorf("the zero counter: %v", err)
	}
}

// TestNothingDrainsBackwards: a bucket that nobody validated errs to the strict
// side.
func TestNothingDrainsBackwards(t *testing.T) {
	rates := mustRates("10-S token-bucket")
	ahead := Window{Period: time.Second, Algorithm: TokenBucket, Opened: t0.Add(time.Hour), Owed: 4}
	if left := (Counter{Windows: []Window{ahead}}).Available(rates, t0); left != 6 {
		t.Errorf("left %d, want 6", left)
	}
}
