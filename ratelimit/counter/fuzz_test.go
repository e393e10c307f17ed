package counter

import (
	"encoding/binary"
	"errors"
	"testing"
)

func FuzzParseRate(f *testing.F) {
	for _, text := range []string{
		"10-S", "100/30s", "100/7d fixed", "10-S token-bucket burst=20", "5-S,300-H,5000-D", "-5-S", "1.5-S", "10/-1d",
		"9007199254740993-S", " , ", "0-s", "100/1h30m",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rate, err := ParseRate(text)
		if err != nil {
			if !errors.Is(err, ErrRate) || rate != (Rate{}) {
				t.Errorf("ParseRate(%q) = %+v, %v", text, rate, err)
			}
		} else {
			checkRoundTrip(t, rate)
		}
		rates, err := ParseRates(text)
		if (err != nil) != (rates == nil) || len(rates) > MaxRates {
			t.Fatalf("ParseRates(%q) = %v, %v", text, rates, err)
		}
		if err != nil {
			return
		}
		again, err := ParseRates(written(rates))
		if err != nil || written(again) != written(rates) {
			t.Errorf("ParseRates(%q) = %q, which reads back as %q, %v", text, written(rates), written(again), err)
		}
	})
}

// deedBytes is one deed of a fuzzed schedule: what, units, how long after the
// last, and another instant relative to it.
const deedBytes = 1 + 7 + 8 + 8

// FuzzCounter plays a schedule of bytes. Whatever it does, the counter stays one
// that this package could have made, and its answers agree with each other.
func FuzzCounter(f *testing.F) {
	f.Add("10-S,100-M", []byte{})
	f.Add("3-S token-bucket burst=5", make([]byte, 3*deedBytes))
	f.Add("5/10s fixed,7-M", []byte("\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x3b\x9a\xca\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, text string, schedule []byte) {
		rates, err := ParseRates(text)
		if err != nil {
			return
		}
		var c Counter
		at := t0
		for range 64 {
			if len(schedule) < deedBytes {
				return
			}
			at = playBytes(&c, rates, at, schedule[:deedBytes])
			schedule = schedule[deedBytes:]
			checkAgreement(t, c, rates, at)
		}
	})
}

func playBytes(c *Counter, rates []Rate, at Instant, b []byte) Instant {
	word := binary.LittleEndian.Uint64
	n := int64(word(b) >> 8 % uint64(MaxUnits))
	at += Instant(int64(word(b[8:])) >> (b[1] % 48)) // either way: the clock may step back
	other := at + Instant(int64(word(b[16:]))>>(b[2]%48))
	switch b[0] % 6 {
	case 0, 1:
		c.Charge(rates, n, at, other)
	case 2:
		c.Post(rates, n, other, at)
	case 3:
		c.Refund(rates, n, other, at)
	case 4:
		c.Credit(rates, n, at)
	default:
		c.Prune(rates[:1], at)
	}
	return at
}

func checkAgreement(t *testing.T, c Counter, rates []Rate, at Instant) {
	t.Helper()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if !c.Clone().Equal(c) {
		t.Fatalf("clone %+v of %+v", c.Clone(), c)
	}
	at = max(at, c.Seen, dawn)
	left := c.Available(rates, at)
	if left < 0 {
		t.Fatalf("left %d", left)
	}
	if last := c.Expires(rates, at); last != 0 && last < at {
		t.Fatalf("expired at %d, before %d", last, at)
	}
	if end := c.LeaseEnd(rates, at, MinPeriod); end < at {
		t.Fatalf("a lease taken at %d ends at %d", at, end)
	}
	for _, n := range []int64{left, left + 1, rates[0].Capacity()} {
		next, ok := c.NextAt(rates, at, n)
		switch {
		case !ok || next == forever: // never, or past the end of time
			if n > 0 && n <= left {
				t.Fatalf("%d of %d units are never available", n, left)
			}
		case next < at || c.Available(rates, next) < n:
			t.Fatalf("at %d: %d units promised at %d, left %d", at, n, next, c.Available(rates, next))
		case next > at && c.Available(rates, next-1) >= n:
			t.Fatalf("at %d: %d units promised at %d, left %d before", at, n, next, c.Available(rates, next-1))
		}
	}
}
