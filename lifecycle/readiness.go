package lifecycle

import (
	"context"
	"sync"
	"time"
)

// loop asks all checks, judges, waits one interval, until ctx ends.
func (n *Node) loop(ctx context.Context) {
	tick := time.NewTicker(n.cfg.ProbeInterval)
	defer tick.Stop()
	for {
		n.probeAll(ctx)
		n.judge(time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// probeAll asks every check at once and waits for the answers, for no longer
// than the bound of one.
func (n *Node) probeAll(ctx context.Context) {
	var round sync.WaitGroup
	for _, p := range n.probers {
		round.Go(func() { p.probe(ctx, n.cfg.ProbeTimeout, &n.running) })
	}
	round.Wait()
}

// judge turns the answers of the last round into the node's state.
func (n *Node) judge(now time.Time) {
	faults := n.faults()
	degraded, sticky := n.degraded(), n.sticky()
	n.mu.Lock()
	defer n.mu.Unlock()
	held := n.heldLocked(now, len(faults) == 0)
	next := n.state
	next.Failing = faults
	switch next.Phase {
	case Joining:
		if held {
			next.Phase, next.Ready = Ready, true
		}
		next.Degraded = degraded
	case Ready:
		next.Ready = len(faults) == 0 || sticky
		next.Degraded = degraded || len(faults) > 0
	default:
		next.Degraded = degraded || len(faults) > 0
	}
	n.publishLocked(next)
}

// heldLocked reports whether all checks have held for Config.MinReady.
func (n *Node) heldLocked(now time.Time, holds bool) bool {
	if !holds {
		n.holding = time.Time{}
		return false
	}
	if n.holding.IsZero() {
		n.holding = now
	}
	return now.Sub(n.holding) >= n.cfg.MinReady
}

// faults is the checks that failed when they were last asked.
func (n *Node) faults() []Fault {
	var out []Fault
	for _, p := range n.probers {
		if f, bad := p.fault(); bad {
			out = append(out, f)
		}
	}
	return out
}
