package kvstore

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/headgate-io/headgate/kvstore/recordpb"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

func sampleAsk() ask {
	const now = counter.Instant(1_764_000_000_123_456_789)
	return ask{
		x: ratelimit.Exchange{
			Key: "f.v.account.acme",
			Rates: []counter.Rate{
				{Units: 10, Period: time.Second},
				{Units: 5, Period: time.Minute, Algorithm: counter.TokenBucket, Burst: 7},
			},
			Returns: []ratelimit.Return{{Units: 3, Until: now}},
			Posts:   []ratelimit.Post{{Units: 2, At: now}},
			Needs:   []ratelimit.Need{{Cost: 1, Count: 2}, {Cost: 3, Count: 1}},
			Want:    4,
			Life:    100 * time.Millisecond,
			Reset:   true,
			Add:     6,
			Node:    "node-1",
			Serial:  42,
		},
		issued:   now,
		patience: 40 * time.Millisecond,
	}
}

func TestAskComesThrough(t *testing.T) {
	want := sampleAsk()
	data, err := encodeAsk(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeAsk(data)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestAsksThatAreRefused(t *testing.T) {
	for what, spoil := range map[string]func(a *ask){
		"no key":            func(a *ask) { a.x.Key = "" },
		"wildcard":          func(a *ask) { a.x.Key = "f.v.account.*" },
		"blank":             func(a *ask) { a.x.Key = "f.v.account.a b" },
		"empty token":       func(a *ask) { a.x.Key = "f..account.a" },
		"long key":          func(a *ask) { a.x.Key = ratelimit.Key(strings.Repeat("k", ratelimit.MaxKeyBytes+1)) },
		"no rates":          func(a *ask) { a.x.Rates = nil },
		"rate of no period": func(a *ask) { a.x.Rates[0].Period = 0 },
		"unknown algorithm": func(a *ask) { a.x.Rates[0].Algorithm = 9 },
		"negative return":   func(a *ask) { a.x.Returns[0].Units = -1 },
		"negative post":     func(a *ask) { a.x.Posts[0].Units = -1 },
		"negative cost":     func(a *ask) { a.x.Needs[0].Cost = -1 },
		"negative count":    func(a *ask) { a.x.Needs[0].Count = -1 },
		"negative want":     func(a *ask) { a.x.Want = -1 },
		"negative extra":    func(a *ask) { a.x.Add = -1 },
		"negative life":     func(a *ask) { a.x.Life = -1 },
		"no node":           func(a *ask) { a.x.Node = "" },
		"no serial":         func(a *ask) { a.x.Serial = 0 },
		"never issued":      func(a *ask) { a.issued = 0 },
		"no patience":       func(a *ask) { a.patience = 0 },
	} {
		a := sampleAsk()
		spoil(&a)
		data, err := encodeAsk(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeAsk(data); !errors.Is(err, errAsk) {
			t.Errorf("%s: %v, want errAsk", what, err)
		}
	}
}

func TestAnswerComesThrough(t *testing.T) {
	r := sampleRecord(t)
	after := &state{counter: r.counter}
	for units := range int64(3) { // all in one go, with one state
		want := ratelimit.Grant{Units: units, Until: r.counter.Seen.Add(time.Second), At: r.counter.Seen}
		got, err := grantFrom(throughWire(t, outcome{grant: want, state: after}))
		if err != nil || got.Units != want.Units || got.Until != want.Until || got.At != want.At || !got.State.Equal(r.counter) {
			t.Errorf("got %+v, %v; want %+v with %+v", got, err, want, r.counter)
		}
	}
	for _, c := range []struct {
		err  error
		want recordpb.Outcome
	}{
		{ratelimit.ErrUnavailable, recordpb.Outcome_OUTCOME_UNAVAILABLE},
		{ratelimit.ErrUnknown, recordpb.Outcome_OUTCOME_UNKNOWN},
		{ratelimit.ErrNewerFormat, recordpb.Outcome_OUTCOME_NEWER_FORMAT},
	} {
		if got := throughWire(t, outcome{err: c.err}).GetOutcome(); got != c.want {
			t.Errorf("%v becomes %v, want %v", c.err, got, c.want)
		}
	}
}

// throughWire is what another node gets to see of an outcome.
func throughWire(t *testing.T, o outcome) *recordpb.Answer {
	t.Helper()
	data, err := encodeAnswer(o)
	if err != nil {
		t.Fatal(err)
	}
	var pb recordpb.Answer
	if err := proto.Unmarshal(data, &pb); err != nil {
		t.Fatal(err)
	}
	return &pb
}

// FuzzAsk: nothing that comes from the wire makes the settling function panic.
func FuzzAsk(f *testing.F) {
	data, err := encodeAsk(sampleAsk())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := decodeAsk(data)
		if err != nil {
			return
		}
		next, _, _ := ratelimit.Settle(counter.Counter{}, a.x, a.issued)
		if err := next.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzAnswer: no answer of an owner makes the node panic.
func FuzzAnswer(f *testing.F) {
	data, err := encodeAnswer(outcome{grant: ratelimit.Grant{Units: 1}, state: &state{counter: sampleRecord(f).counter}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		var pb recordpb.Answer
		if proto.Unmarshal(data, &pb) != nil {
			return
		}
		if g, err := grantFrom(&pb); err == nil {
			if err := g.State.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
