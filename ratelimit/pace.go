package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

const (
	// paceWindow is over how long exchanges are counted to tell their pace. It
	// is short beside a lease's life, so that a node which a crowd of callers
	// meets makes its leases longer before the first of them end.
	paceWindow = 50 * time.Millisecond
	// paceFade is about how long a pace is remembered: leases that were granted
	// together end together, and between their ends it is quiet.
	paceFade = time.Second
)

// pace is how many exchanges a second a node makes. It rises at once and falls
// slowly. The zero pace is 0. Its methods may be called concurrently.
type pace struct {
	perSecond atomic.Int64

	mu    sync.Mutex
	since counter.Instant // begin of the window
	made  int64           // in it
}

// note counts an exchange that is made now.
func (p *pace) note(now counter.Instant) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made++
	span := now.Sub(p.since)
	if span < paceWindow {
		return
	}
	fresh, old := float64(p.made)/span.Seconds(), float64(p.perSecond.Load())
	if fresh < old {
		fresh = old + (fresh-old)*min(1, span.Seconds()/paceFade.Seconds())
	}
	p.perSecond.Store(int64(fresh))
	p.since, p.made = now, 0
}
