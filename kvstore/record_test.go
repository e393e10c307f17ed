package kvstore

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// sampleRecord has one window of each algorithm and a journal.
func sampleRecord(t testing.TB) *record {
	t.Helper()
	const now = counter.Instant(1_764_000_000_123_456_789)
	rates := []counter.Rate{
		{Units: 1000, Period: time.Hour},
		{Units: 1000, Period: time.Minute, Algorithm: counter.Fixed},
		{Units: 7, Period: time.Second, Algorithm: counter.TokenBucket, Burst: 50},
	}
	r := &record{writer: "headgate-0", serial: uint64(now)}
	for i := range 5 {
		at := now.Add(time.Duration(i) * 90 * time.Second)
		r.counter.Charge(rates, int64(i+1), at, at.Add(100*time.Millisecond))
		r.journal.add(settled{
			name: name{node: uint64(i), serial: 1}, at: at, units: int64(i + 1), until: at.Add(time.Millisecond), travels: true,
		})
	}
	r.journal.add(settled{name: name{node: 9, serial: 9}, at: r.counter.Seen}) // stays here
	if err := r.counter.Validate(); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRecordComesBack(t *testing.T) {
	want := sampleRecord(t)
	data, err := want.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeRecord(data)
	if err != nil {
		t.Fatal(err)
	}
	if !got.counter.Equal(want.counter) || got.writer != want.writer || got.serial != want.serial {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if len(got.journal.entries) != 1 { // the others are older than journalAge
		t.Fatalf("journal %+v", got.journal)
	}
	if g, v := got.journal.find(name{node: 4, serial: 1}, itinerary{}, 0); v != alreadySettled || g.Units != 5 {
		t.Errorf("journal gives %+v, %d", g, v)
	}
	if got.journal.forgotten != want.journal.forgotten {
		t.Errorf("forgotten at %d, want %d", got.journal.forgotten, want.journal.forgotten)
	}
}

// TestRecordIsSmall holds the promise of about 40 bytes for one rate.
func TestRecordIsSmall(t *testing.T) {
	r := record{writer: "headgate-0", serial: uint64(time.Now().UnixNano())}
	now := counter.InstantOf(time.Now())
	r.counter.Charge([]counter.Rate{{Units: 10, Period: time.Hour}}, 3, now, now)
	data, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", len(data))
	if len(data) > 55 {
		t.Errorf("%d bytes", len(data))
	}
}

func TestRecordsThatAreRefused(t *testing.T) {
	good, err := sampleRecord(t).encode()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data []byte
		want error
	}{
		"empty":                       {nil, errGarbage},
		"text":                        {[]byte("hello"), errGarbage},
		"format zero":                 {[]byte{0x08, 0x00}, errGarbage},
		"no counter":                  {[]byte{0x08, recordFormat}, errGarbage},
		"cut short":                   {good[:len(good)-1], errGarbage},
		"newer":                       {append([]byte{0x08, recordFormat + 1}, good[2:]...), ratelimit.ErrNewerFormat},
		"newer and otherwise garbage": {[]byte{0x08, 0x7f, 0xff}, ratelimit.ErrNewerFormat},
	} {
		if _, err := decodeRecord(c.data); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// FuzzRecord: no value makes the decoder panic, and what it lets through is a
// counter that the arithmetic can work on, and comes back when encoded.
func FuzzRecord(f *testing.F) {
	good, err := sampleRecord(f).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{0x08, recordFormat})
	f.Add([]byte{0x08, recordFormat + 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := decodeRecord(data)
		if err != nil {
			if !errors.Is(err, errGarbage) && !errors.Is(err, ratelimit.ErrNewerFormat) {
				t.Fatalf("an error without a name: %v", err)
			}
			return
		}
		if err := r.counter.Validate(); err != nil {
			t.Fatal(err)
		}
		rates := []counter.Rate{{Units: 10, Period: time.Minute}}
		x := ratelimit.Exchange{Rates: rates, Needs: []ratelimit.Need{{Cost: 1, Count: 1}}}
		ratelimit.Settle(r.counter, x, r.counter.Seen)
		again, err := r.encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeRecord(again)
		if err != nil {
			t.Fatalf("what was encoded is refused: %v", err)
		}
		if !back.counter.Equal(r.counter) || !reflect.DeepEqual(back.journal.entries, r.journal.entries) {
			t.Fatalf("%+v came back as %+v", r, back)
		}
	})
}
