package kvstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// TestConformanceOfSettlers holds settlers of several nodes, without owners in
// front, to the contract of a store.
func TestConformanceOfSettlers(t *testing.T) {
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d servers", size), func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Env {
				b := newBed(t, size)
				env := storetest.Env{Clock: storetest.NewClock(), Stale: freshness}
				for i := range 3 {
					env.Stores = append(env.Stores, b.settler(t, fmt.Sprintf("node-%d", i)))
				}
				return env
			})
		})
	}
}

// TestGroupCommit: all who wait for one counter share writes.
func TestGroupCommit(t *testing.T) {
	s := newBed(t, 1).settler(t, "a")
	const workers, each = 32, 50
	rates := perDay(workers * each / 2)
	var granted atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				g, err := s.Exchange(t.Context(), needs("f.v.account.hot", rates, 1))
				if err != nil {
					t.Errorf("exchange: %v", err)
					return
				}
				granted.Add(g.Units)
			}
		})
	}
	wg.Wait()
	if granted.Load() != workers*each/2 {
		t.Errorf("granted %d, want %d", granted.Load(), workers*each/2)
	}
	if writes := testutil.ToFloat64(s.metrics.writes); writes > workers*each/2/4 {
		t.Errorf("%v writes for %d units, want at most a quarter", writes, workers*each/2)
	}
	if n := testutil.ToFloat64(s.metrics.conflicts); n != 0 {
		t.Errorf("%v conflicts with nobody else there", n)
	}
}

// TestOneRoundTrip: an uncontended exchange on a counter seen before is one
// write and no read.
func TestOneRoundTrip(t *testing.T) {
	s := newBed(t, 1).settler(t, "a")
	for range 10 {
		if _, err := s.Exchange(t.Context(), needs("f.v.account.one", perDay(100), 1)); err != nil {
			t.Fatal(err)
		}
	}
	if r, w := testutil.ToFloat64(s.metrics.reads), testutil.ToFloat64(s.metrics.writes); r != 1 || w != 10 {
		t.Errorf("%v reads and %v writes of ten exchanges, want 1 and 10", r, w)
	}
}

// TestDenialWritesNothing: it leaves the record's sequence as it was.
func TestDenialWritesNothing(t *testing.T) {
	b := newBed(t, 1)
	s := b.settler(t, "a")
	key := ratelimit.Key("f.v.account.denied")
	if _, err := s.Exchange(t.Context(), needs(key, perDay(3), 3)); err != nil {
		t.Fatal(err)
	}
	before, _ := b.stored(t, s.bucket.js, key)
	for range 20 {
		g, err := s.Exchange(t.Context(), needs(key, perDay(3), 1))
		if err != nil || g.Units != 0 {
			t.Fatalf("granted %d, %v; want a denial", g.Units, err)
		}
	}
	if after, _ := b.stored(t, s.bucket.js, key); after.sequence != before.sequence {
		t.Errorf("sequence went from %d to %d", before.sequence, after.sequence)
	}
}

// TestCase17ExpiredAndUsedAgain lets counters expire and uses them again: a
// thousand of them together instead of one a thousand times.
func TestCase17ExpiredAndUsedAgain(t *testing.T) {
	b := newBed(t, 1)
	s := b.settler(t, "a")
	rates := []counter.Rate{{Units: 1, Period: time.Second}}
	use := func(when string) {
		t.Helper()
		for i := range 1000 {
			key := ratelimit.Key(fmt.Sprintf("f.v.account.%d", i))
			g, err := s.Exchange(t.Context(), needs(key, rates, 2))
			if err != nil || g.Units != 1 {
				t.Fatalf("%s, counter %d: granted %d, %v; want the one unit", when, i, g.Units, err)
			}
		}
	}
	use("new")
	if !within(bedWait, func() bool { return records(t, b, s) == 0 }) {
		t.Fatalf("%d records did not expire", records(t, b, s))
	}
	use("expired")
}

// records counts the records of the bucket.
func records(t *testing.T, b *bed, s *settler) uint64 {
	t.Helper()
	stream, err := s.bucket.js.Stream(t.Context(), b.stream)
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

// TestCase18TimeToLive looks at the record's time to live.
func TestCase18TimeToLive(t *testing.T) {
	b := newBed(t, 1)
	s := b.settler(t, "a")
	for _, algorithm := range []counter.Algorithm{counter.Sliding, counter.Fixed, counter.TokenBucket} {
		for _, period := range []time.Duration{time.Second, time.Minute, 24 * time.Hour} {
			key := ratelimit.Key(fmt.Sprintf("f.v.account.%s-%s", algorithm, period))
			rates := []counter.Rate{{Units: 10, Period: period, Algorithm: algorithm}}
			for range 3 { // restated by every write
				if _, err := s.Exchange(t.Context(), needs(key, rates, 1)); err != nil {
					t.Fatal(err)
				}
				v, _ := b.stored(t, s.bucket.js, key)
				ttl, err := time.ParseDuration(v.header.Get("Nats-TTL") + "s")
				if err != nil || ttl < period || ttl > 2*period+5*time.Second {
					t.Errorf("%s per %s: time to live %v (%v)", algorithm, period, ttl, err)
				}
			}
		}
	}
	// A counter that was forgotten is no exception.
	key := ratelimit.Key("f.v.account.sliding-1m0s")
	x := ratelimit.Exchange{Key: key, Rates: []counter.Rate{{Units: 10, Period: time.Minute}}, Reset: true}
	if _, err := s.Exchange(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	v, rec := b.stored(t, s.bucket.js, key)
	ttl, err := time.ParseDuration(v.header.Get("Nats-TTL") + "s")
	if err != nil || ttl < time.Second || ttl > 5*time.Second || !rec.counter.Empty() {
		t.Errorf("after a reset: time to live %v (%v), %+v", ttl, err, rec.counter)
	}
}

// TestTimeToLiveWhereWallClocksAreApart: the server whose clock is ahead of all
// others must not let a record go before its time.
func TestTimeToLiveWhereWallClocksAreApart(t *testing.T) {
	b := newBed(t, 1)
	s := b.settler(t, "a")
	for _, apart := range []time.Duration{0, 400 * time.Millisecond, 90 * time.Second, 2 * time.Hour} {
		s.cfg.Apart = func() time.Duration { return apart }
		key := ratelimit.Key("f.v.account.apart-" + fmt.Sprint(apart.Milliseconds()))
		if _, err := s.Exchange(t.Context(), needs(key, []counter.Rate{{Units: 10, Period: time.Minute}}, 1)); err != nil {
			t.Fatal(err)
		}
		v, _ := b.stored(t, s.bucket.js, key)
		ttl, err := time.ParseDuration(v.header.Get("Nats-TTL") + "s")
		if least := time.Minute + apart; err != nil || ttl < least || ttl > least+time.Minute+6*time.Second {
			t.Errorf("%v apart: time to live %v (%v)", apart, ttl, err)
		}
	}
}

// TestStopWaits: what is in flight is answered, what comes later is refused.
func TestStopWaits(t *testing.T) {
	s := newBed(t, 1).settler(t, "a")
	results := make(chan error, 20)
	for range cap(results) {
		go func() {
			_, err := s.Exchange(context.Background(), needs("f.v.account.stop", perDay(100), 1))
			results <- err
		}()
	}
	if err := <-results; err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bedWait)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	for range cap(results) - 1 {
		if err := <-results; err != nil && errorResult(err) != exchangeUnavailable {
			t.Errorf("in flight: %v", err)
		}
	}
	if _, err := s.Exchange(t.Context(), needs("f.v.account.stop", perDay(100), 1)); errorResult(err) != exchangeUnavailable {
		t.Errorf("after Stop: %v", err)
	}
}
