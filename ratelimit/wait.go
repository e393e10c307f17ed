package ratelimit

import (
	"context"
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// waiter is an invocation that waits for its cell's next exchange. A cost of 0
// only waits for the counter to be read.
type waiter struct {
	cost     int64
	deadline time.Time
	done     chan verdict // holds one
	again    bool         // was passed over once, and waits again
	gone     bool         // nobody waits any more; guarded by the cell's lock
}

// acquire is the slow path: it decides with what the cell knows, or waits for
// its exchange, no longer than Config.Attempt. It returns an error only when
// the caller's context ends first.
func (l *Limiter) acquire(ctx context.Context, c *cell, p *plan, cost int64) (verdict, error) {
	c.mu.Lock()
	now := l.clock.Now()
	p = c.adopt(p, now)
	if v, ok := l.decideLocked(c, p, now, cost); ok {
		c.mu.Unlock()
		return v, nil
	}
	w := &waiter{cost: cost, deadline: time.Now().Add(l.cfg.Attempt), done: make(chan verdict, 1)}
	c.busy().queue = append(c.work.queue, w)
	l.enqueue(c)
	c.mu.Unlock()
	return l.await(ctx, c, w)
}

// decideLocked decides without an exchange where that is possible: from a
// lease, from a denial, by the node itself. The lock is held.
func (l *Limiter) decideLocked(c *cell, p *plan, now counter.Instant, cost int64) (verdict, bool) {
	held := c.work != nil && c.work.held
	if !held {
		c.rotate(now, cost)
		if v := c.takeLocked(now, cost); v.outcome == taken {
			return v, true
		}
	}
	if d := c.denial.Load(); d.denies(now, cost) {
		return d.verdict(p, now, cost), true
	}
	switch {
	case l.breaker.open(), c.work != nil && c.work.outage != nil && l.healing(now):
		return l.degrade(c, p, now, cost), true
	case held:
		return verdict{}, false
	case c.mode(p) == Delayed && c.known:
		if c.failing {
			return l.degrade(c, p, now, cost), true
		}
		return c.decideDelayed(l, p, now, cost)
	}
	return verdict{}, false
}

// await waits for the waiter's verdict.
func (l *Limiter) await(ctx context.Context, c *cell, w *waiter) (verdict, error) {
	timer := time.NewTimer(l.cfg.Attempt)
	defer timer.Stop()
	select {
	case v := <-w.done:
		if v.outcome != failed {
			return v, nil
		}
	case <-timer.C:
	case <-ctx.Done():
		if v, ok := c.abandon(w); ok && v.outcome == taken {
			c.release(l, v.lease, v.at, w.cost)
		}
		return verdict{}, ctx.Err()
	}
	if v, ok := c.abandon(w); ok && v.outcome != failed {
		return v, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// The policy may have changed meanwhile.
	return l.degrade(c, c.plan.Load(), l.clock.Now(), w.cost), nil
}

// abandon takes a waiter out, unless its verdict is already there.
func (c *cell) abandon(w *waiter) (verdict, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case v := <-w.done:
		return v, true
	default:
	}
	w.gone = true
	if c.work != nil {
		if i := slices.Index(c.work.queue, w); i >= 0 {
			c.work.queue = slices.Delete(c.work.queue, i, i+1)
		}
	}
	return verdict{}, false
}

// degrade decides without the store, as the policy says. The lock is held.
func (l *Limiter) degrade(c *cell, p *plan, now counter.Instant, cost int64) verdict {
	if cost == 0 {
		return verdict{outcome: failed, degraded: true}
	}
	if c.work != nil && c.work.held {
		return verdict{outcome: refused, retry: l.cfg.SyncInterval}
	}
	switch p.policy.OnStoreFailure {
	case FailAllow:
		c.post(cost, now, now)
		l.look(c)
		return verdict{outcome: taken, at: now, degraded: true}
	case FailDeny:
		return verdict{outcome: refused, retry: l.cfg.ProbeInterval, degraded: true}
	default:
		if c.transient { // it is new with every invocation, and so would its share be
			return verdict{outcome: refused, retry: l.cfg.ProbeInterval, degraded: true}
		}
		return c.decideAlone(l, p, now, cost)
	}
}
