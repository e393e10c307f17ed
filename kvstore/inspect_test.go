package kvstore

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// TestInspect: one counter, the counters of one function, and those that cannot
// be read.
func TestInspect(t *testing.T) {
	s := startStore(t, testConfig(t))
	if _, err := s.Counter(t.Context(), "f.v.total._"); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("before the store is joined: %v", err)
	}
	awaitJoined(t, s)
	if _, err := s.Counter(t.Context(), "f.v.total._"); !errors.Is(err, ErrNoCounter) {
		t.Errorf("no counter: %v", err)
	}
	for f := range 3 {
		for i := range 40 {
			prefix := ratelimit.FunctionPrefix(fmt.Sprintf("f.%d", f), "1")
			key := ratelimit.Key(fmt.Sprintf("%saccount.%d", prefix, i))
			if _, err := s.Exchange(t.Context(), named("x", needs(key, perDay(10), int64(f+1)))); err != nil {
				t.Fatal(err)
			}
		}
	}
	prefix := ratelimit.FunctionPrefix("f.1", "1")
	got, err := s.Counter(t.Context(), ratelimit.Key(prefix+"account.7"))
	if err != nil {
		t.Fatal(err)
	}
	checkInspected(t, s, got)

	list, total, err := s.Counters(t.Context(), prefix, 25)
	if err != nil || total != 40 || len(list) != 25 {
		t.Fatalf("%d of %d counters, %v; want 25 of 40", len(list), total, err)
	}
	for _, c := range list {
		checkInspected(t, s, c)
	}
	for want, prefix := range map[int]string{120: "", 40: ratelimit.EscapeToken("f.2") + ".", 0: "g."} {
		list, total, err := s.Counters(t.Context(), prefix, 0)
		if err != nil || total != want || len(list) != want {
			t.Errorf("%q: %d of %d counters, %v; want %d", prefix, len(list), total, err, want)
		}
	}
	for _, bad := range []string{"f", "*.", ">", ".", "f..", "f v."} {
		if _, _, err := s.Counters(t.Context(), bad, 0); !errors.Is(err, ErrPrefix) {
			t.Errorf("%q: %v, want ErrPrefix", bad, err)
		}
	}
}

// checkInspected demands a counter with two units per day, just written.
func checkInspected(t *testing.T, s *Store, c CounterRecord) {
	t.Helper()
	if left := c.Counter.Available(perDay(10), s.Clock().Now()); c.Err != nil || left != 8 {
		t.Errorf("%s: %d left, %v; want 8", c.Key, left, c.Err)
	}
	age, life := time.Since(c.Written), c.Expires.Sub(c.Written)
	if c.Writer != "node-0" || c.Sequence == 0 || c.SizeBytes == 0 || age < -time.Second || age > testPatience || life < 24*time.Hour {
		t.Errorf("%s: %+v", c.Key, c)
	}
}

// TestInspectForeignRecords: a record that cannot be read is listed all the
// same, with the reason.
func TestInspectForeignRecords(t *testing.T) {
	s := startStore(t, testConfig(t))
	awaitJoined(t, s)
	b := newCountersBucket(s.JetStream(), streamPrefix+CountersBucket)
	for key, data := range map[ratelimit.Key][]byte{"f.v.account.new": {0x08, recordFormat + 1}, "f.v.account.bad": []byte("x")} {
		if _, err := b.write(t.Context(), key, data, time.Minute, 0); err != nil {
			t.Fatal(err)
		}
	}
	list, total, err := s.Counters(t.Context(), "f.", 0)
	if err != nil || total != 2 || len(list) != 2 {
		t.Fatalf("%d of %d counters, %v", len(list), total, err)
	}
	for _, c := range list {
		want := errGarbage
		if c.Key == "f.v.account.new" {
			want = ratelimit.ErrNewerFormat
		}
		if !errors.Is(c.Err, want) {
			t.Errorf("%s: %v, want %v", c.Key, c.Err, want)
		}
	}
}

// TestInspectFromEveryMember: a list is whole at once, whichever member of a
// cluster is asked and whichever serves it.
func TestInspectFromEveryMember(t *testing.T) {
	stores := startStores(t, memberConfigs(t))
	awaitJoined(t, stores...)
	const counters = 10
	for i := range counters {
		key := ratelimit.Key(fmt.Sprintf("f.v.account.%d", i))
		if _, err := stores[0].Exchange(t.Context(), named("x", needs(key, perDay(10), 1))); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "every member lists what was written", func() bool {
		for _, s := range stores {
			if _, total, err := s.Counters(t.Context(), "f.", 0); err != nil || total != counters {
				return false
			}
		}
		return true
	})
	const rounds = 20
	for i := range rounds * len(stores) {
		s := stores[i%len(stores)]
		list, total, err := s.Counters(t.Context(), "f.", 0)
		if err != nil || total != counters || len(list) != counters {
			t.Errorf("round %d, %s: %d of %d counters, %v", i, s.cfg.NodeName, len(list), total, err)
		}
	}
}
