package ratelimit_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// forgetful is a store that settles every exchange against a fresh counter and
// keeps nothing, so that the heap holds the limiter's side only.
type forgetful struct{ clock ratelimit.Clock }

func (s forgetful) Exchange(_ context.Context, x ratelimit.Exchange) (ratelimit.Grant, error) {
	_, g, _ := ratelimit.Settle(counter.Counter{}, x, s.clock.Now())
	return g, nil
}

// BenchmarkCells measures what a million accounts cost a node, and what is left
// of that when they have gone; ten thousand with -short, which only shows that it
// runs.
func BenchmarkCells(b *testing.B) {
	cells := 1_000_000
	if testing.Short() {
		cells = 10_000
	}
	for b.Loop() {
		clock := newWallClock()
		cfg := ratelimit.DefaultConfig()
		cfg.Node, cfg.IdleAfter = "bench", 2*time.Second
		p := &ratelimit.Policy{Function: ratelimit.Any, Version: ratelimit.Any, Account: []counter.Rate{{Units: 100, Period: time.Hour}}}
		l, err := ratelimit.New(forgetful{clock}, clock, finderOf(p), ratelimit.NewKeyring(), cfg)
		if err != nil {
			b.Fatal(err)
		}
		before := heap()
		for i := range cells {
			inv := ratelimit.Invocation{Account: fmt.Sprintf("account-%07d", i), Function: "f", Version: "v", Cost: 1}
			if _, err := l.Decide(b.Context(), inv); err != nil {
				b.Fatal(err)
			}
		}
		if err := l.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		await(b, "cells at rest", func() bool { return l.Busy() == 0 })
		b.ReportMetric(float64(heap()-before)/float64(cells), "bytes/cell")
		await(b, "eviction", func() bool { return l.Cells() == 0 })
		b.ReportMetric(float64(heap()-before)/float64(cells), "bytes/evicted-cell")
		if err := l.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func await(b *testing.B, what string, done func() bool) {
	b.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !done() {
		if time.Now().After(deadline) {
			b.Fatalf("%s: not within two minutes", what)
		}
		<-ticker.C
	}
}
