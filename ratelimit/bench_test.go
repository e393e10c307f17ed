package ratelimit_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// BenchmarkDecide measures decisions from memory, beside the purely local
// alternative: a token bucket behind a concurrent map.
func BenchmarkDecide(b *testing.B) {
	b.Run("reference/hot", func(b *testing.B) { benchReference(b, 1) })
	b.Run("reference/10k", func(b *testing.B) { benchReference(b, 10_000) })
	plenty := []counter.Rate{{Units: counter.MaxUnits / 2, Period: time.Hour}}
	account := &ratelimit.Policy{Function: ratelimit.Any, Version: ratelimit.Any, Account: plenty}
	b.Run("leased/hot", func(b *testing.B) { benchDecide(b, 1, account) })
	b.Run("leased/10k", func(b *testing.B) { benchDecide(b, 10_000, account) })
	b.Run("leased/twotiers", func(b *testing.B) {
		benchDecide(b, 1, &ratelimit.Policy{Function: ratelimit.Any, Version: ratelimit.Any, Account: plenty, Total: plenty})
	})
	b.Run("delayed/hot", func(b *testing.B) {
		benchDecide(b, 1, &ratelimit.Policy{Function: ratelimit.Any, Version: ratelimit.Any, Account: plenty, Consistency: ratelimit.Delayed})
	})
	b.Run("denied/hot", func(b *testing.B) {
		few := []counter.Rate{{Units: 1, Period: 24 * time.Hour}}
		benchDecide(b, 1, &ratelimit.Policy{Function: ratelimit.Any, Version: ratelimit.Any, Account: few})
	})
	b.Run("policies10k", func(b *testing.B) {
		policies := make([]*ratelimit.Policy, 10_000)
		for i := range policies {
			policies[i] = &ratelimit.Policy{Function: fmt.Sprintf("function-%d", i), Version: ratelimit.Any, Account: plenty}
		}
		benchDecide(b, 1, append(policies, account)...)
	})
}

func benchReference(b *testing.B, keys int) {
	var limiters sync.Map
	names := accounts(keys)
	for _, name := range names {
		limiters.Store(name, rate.NewLimiter(rate.Limit(1e12), 1e12))
	}
	b.ReportAllocs()
	var worker atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for i := start(&worker, keys); pb.Next(); i++ {
			v, _ := limiters.Load(names[i%keys])
			if !v.(*rate.Limiter).Allow() {
				panic("denied")
			}
		}
	})
}

func benchDecide(b *testing.B, keys int, policies ...*ratelimit.Policy) {
	clock := newWallClock()
	cfg := ratelimit.DefaultConfig()
	cfg.Node = "bench"
	l, err := ratelimit.New(storetest.NewMemory(clock), clock, finderOf(policies...), ratelimit.NewKeyring(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	if err := l.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer l.Stop(context.Background())
	names := accounts(keys)
	for range 100 { // warm: let the demand be known
		for _, name := range names {
			decide(b, l, name)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	var worker atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for i := start(&worker, keys); pb.Next(); i++ {
			decide(b, l, names[i%keys])
		}
	})
}

func decide(b *testing.B, l *ratelimit.Limiter, account string) {
	if _, err := l.Decide(context.Background(), ratelimit.Invocation{Account: account, Function: "f", Version: "v", Cost: 1}); err != nil {
		b.Error(err)
	}
}

// start sets workers apart, so that they do not walk the keys in step.
func start(worker *atomic.Int64, keys int) int { return int(worker.Add(1)) * keys / 3 }

func accounts(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("account-%07d", i)
	}
	return names
}

// wallClock is the store's clock as a node keeps it: an offset to the local
// monotonic clock.
type wallClock struct {
	base   time.Time
	offset counter.Instant
}

func newWallClock() *wallClock {
	now := time.Now()
	return &wallClock{base: now, offset: counter.InstantOf(now)}
}

func (c *wallClock) Now() counter.Instant { return c.offset.Add(time.Since(c.base)) }
func (c *wallClock) Error() time.Duration { return 0 }
