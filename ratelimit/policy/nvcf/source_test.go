package nvcf

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf/nvcfapipb"
)

// A policy that the API no longer knows is gone.
func TestSource_removed(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", rate("10-S"))
	s, f := start(t, a.address)
	units(s)
	a.is(fails(codes.NotFound))
	until(t, "gone", func() bool { n, _, degraded := units(s); return n == -1 && !degraded })
	wait(t, f.changes, "change")
	a.is(fails(codes.Unavailable)) // that there is none is known as well
	wait(t, f.faults, "fault")
	if n, _, degraded := units(s); n != -1 || degraded {
		t.Errorf("got %d, degraded %v", n, degraded)
	}
}

// What can be read of an answer is in force where nothing better is known: more
// than the limiter this replaces enforces, never less.
func TestSource_unparsableFirst(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", rate("5-S,garbage"))
	s, f := start(t, a.address)
	if n, stale, degraded := units(s); n != 5 || !stale || degraded {
		t.Errorf("got %d, stale %v, degraded %v", n, stale, degraded)
	}
	wait(t, f.faults, "fault")
	a.is(rate("6-S,garbage"))
	until(t, "the edited part", func() bool { n, _, _ := units(s); return n == 6 })
	a.is(rate("garbage"))
	asked := a.asked.Load()
	until(t, "two more questions", func() bool { units(s); return a.asked.Load() >= asked+2 })
	if n, _, degraded := units(s); n != 6 || degraded {
		t.Errorf("got %d, degraded %v", n, degraded)
	}
	if len(f.faults) > 0 {
		t.Errorf("the same fault was told again: %v", <-f.faults)
	}
	b := startAPI(t, "", rate("garbage"))
	s, _ = start(t, b.address)
	if n, _, degraded := units(s); n != -1 || !degraded {
		t.Errorf("nothing readable: got %d, degraded %v", n, degraded)
	}
}

// testSingleFlightConcurrentRequests of the limiter this replaces, and one more
// thing: a caller that gives up spoils nothing for the others.
func TestSource_singleFlight(t *testing.T) {
	t.Parallel()
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	a := startAPI(t, "", func(context.Context, function) (*nvcfapipb.RateLimitConfig, error) {
		arrived <- struct{}{}
		<-release
		return &nvcfapipb.RateLimitConfig{Rate: new("10-S")}, nil
	})
	s, _ := start(t, a.address, longTTL, func(c *Config) { c.Timeout = patience })
	first, giveUp := context.WithCancel(t.Context())
	gone := make(chan bool)
	go func() {
		_, degraded := s.Ask(first, "f", "v")
		gone <- degraded
	}()
	wait(t, arrived, "question")
	var asking sync.WaitGroup
	for range 10 {
		asking.Go(func() {
			if n, _, degraded := units(s); n != 10 || degraded {
				t.Errorf("got %d, degraded %v", n, degraded)
			}
		})
	}
	giveUp()
	if !wait(t, gone, "the caller that gave up") {
		t.Error("a caller that gave up was told that there is no limit")
	}
	close(release)
	asking.Wait()
	if n := a.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// What is in use is asked for ahead of time: nobody ever waits, and an
// unchanged policy stays the same.
func TestSource_warm(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", rate("10-S"))
	s, f := start(t, a.address)
	p, _ := s.Ask(t.Context(), "f", "v")
	e := s.entry(function{"f", "v"})
	until(t, "five questions", func() bool {
		if now := e.answer.Load(); !time.Now().Before(now.until) {
			t.Log("an answer was due")
		}
		again, _ := s.Ask(t.Context(), "f", "v")
		if again != p {
			t.Fatal("an unchanged policy is another one")
		}
		return a.asked.Load() >= 5
	})
	if len(f.changes) > 0 {
		t.Error("a change was told where there was none")
	}
}

// What nobody uses is not asked for.
func TestSource_idle(t *testing.T) {
	t.Parallel()
	s, err := New(Config{Address: "127.0.0.1:1", Timeout: time.Second, CacheTTL: time.Minute, MaxFunctions: 2, MaxInFlight: 1, Algorithm: "sliding"})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	e := s.entry(function{"f", "v"})
	tests := []struct {
		idle, left time.Duration
		tries      int
		want       bool
	}{
		{time.Second, time.Minute, 0, false},
		{time.Second, 11 * time.Second, 0, true},  // within the last fifth
		{time.Second, 13 * time.Second, 0, false}, // not yet
		{31 * time.Second, time.Second, 0, false}, // not used for half the life
		{time.Second, 11 * time.Second, 1, false}, // failing: no sooner than its pause
		{time.Second, 0, 1, true},
	}
	for _, tt := range tests {
		e.used.Store(now.Add(-tt.idle).UnixNano())
		e.answer.Store(&answer{until: now.Add(tt.left), tries: tt.tries})
		if got := s.due(e, now); got != tt.want {
			t.Errorf("%+v: got %v", tt, got)
		}
	}
}

func TestSource_bounded(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", rate("10-S"))
	s, _ := start(t, a.address, longTTL, func(c *Config) { c.MaxFunctions = 3 })
	for i := range 10 {
		s.Ask(t.Context(), fmt.Sprint("f", i), "v")
	}
	if n := s.answers.Len(); n != 3 {
		t.Errorf("remembers %d", n)
	}
	s.Ask(t.Context(), "f9", "v")
	if n := a.asked.Load(); n != 10 {
		t.Errorf("asked %d times", n)
	}
}

func TestSource_stopped(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", hangs)
	s, f := start(t, a.address, func(c *Config) { c.Timeout = patience })
	done := make(chan struct{})
	go func() {
		units(s)
		close(done)
	}()
	until(t, "a question", func() bool { return a.asked.Load() == 1 })
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	wait(t, done, "the caller's return")
	if n, _, degraded := units(s); n != -1 || !degraded || len(f.faults) > 0 {
		t.Errorf("after Stop: %d, degraded %v, %d faults", n, degraded, len(f.faults))
	}
}

// In a set: policies of the API serve their function's version only, and a
// changed one moves the generation.
func TestSource_inSet(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", rate("10-S"))
	cfg := DefaultConfig()
	cfg.Address, cfg.CacheTTL = a.address, 200*time.Millisecond
	var log bytes.Buffer
	reg := prometheus.NewPedanticRegistry()
	s, err := New(cfg, WithRegisterer(reg), WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(&log, nil))
	set, err := policy.NewSet(policy.DefaultConfig(), []policy.Source{s}, policy.WithLogger(logger), policy.WithRegisterer(reg))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, _ := set.Find(t.Context(), "f", "v")
	if p == nil || p.Source != policy.NVCF || p.Version != "v" || set.Loaded() != nil {
		t.Fatalf("got %+v, loaded %v", p, set.Loaded())
	}
	before := set.Generation()
	a.is(rate("20-S"))
	until(t, "generation", func() bool { set.Find(t.Context(), "f", "v"); return set.Generation() != before })
	if p, _ := set.Find(t.Context(), "f", "v"); p.Account[0].Units != 20 {
		t.Errorf("got %v", p.Account)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("metric names: %v, %v", problems, err)
	}
}

var _ ratelimit.Finder = (*policy.Set)(nil)
