package ratelimit

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// paceWindow is over how long exchanges are counted to tell their pace. It is
// short beside a lease's life, so that a node which a crowd of callers meets
// makes its leases longer before the first of them end.
const paceWindow = 50 * time.Millisecond

// pace is how many exchanges a second a node makes, as the average of the last
// window and of those before it. The zero pace is 0. Its methods may be called
// concurrently.
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
	fresh := float64(p.made) / span.Seconds()
	if span < 2*paceWindow {
		fresh = (fresh + float64(p.perSecond.Load())) / 2
	}
	p.perSecond.Store(int64(fresh))
	p.since, p.made = now, 0
}
