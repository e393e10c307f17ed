package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"
)

// breakAfter is how many exchanges must fail in a row before the store counts
// as away. They must also span twice the attempt's bound: a store that refuses
// quickly while it changes its leader is not away.
const breakAfter = 3

// breaker tells whether the store is away. All methods may be called
// concurrently.
type breaker struct {
	attempt time.Duration
	isOpen  atomic.Bool

	mu       sync.Mutex
	failures int
	since    time.Time // of the first failure in a row
}

func (b *breaker) open() bool { return b.isOpen.Load() }

// failure notes a failed exchange and reports whether it opened the breaker.
func (b *breaker) failure(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures == 0 {
		b.since = now
	}
	b.failures++
	if b.failures < breakAfter || now.Sub(b.since) < 2*b.attempt {
		return false
	}
	return b.isOpen.CompareAndSwap(false, true)
}

// success notes an exchange that the store answered and reports whether it
// closed the breaker.
func (b *breaker) success() bool {
	if !b.isOpen.Load() && !b.failing() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = 0
	return b.isOpen.CompareAndSwap(true, false)
}

func (b *breaker) failing() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures > 0
}
