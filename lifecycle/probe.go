package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Check is one condition of readiness.
type Check struct {
	// Name is what /readyz calls it when it fails.
	Name string
	// Probe returns nil while the condition holds. It must be safe to call
	// from another goroutine and should obey its context; a Probe that does
	// not is not called again before it returned.
	Probe func(context.Context) error
}

// Fault is a check that does not hold.
type Fault struct {
	Check  string `json:"check"`
	Reason string `json:"reason"`
}

// prober runs one check, never twice at a time, and keeps its last answer.
type prober struct {
	check Check

	mu   sync.Mutex
	busy bool
	err  error
}

func newProber(c Check) *prober { return &prober{check: c, err: ErrNotProbed} }

// probe asks the check once, for no longer than bound. The goroutine that asks
// is counted in asking until the check returned, which may be later.
func (p *prober) probe(ctx context.Context, bound time.Duration, asking *sync.WaitGroup) {
	if !p.begin() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	done := make(chan struct{})
	asking.Go(func() {
		defer close(done)
		p.end(p.check.Probe(ctx))
	})
	select {
	case <-done:
	case <-ctx.Done():
		// A node that stops asks no more; that says nothing of who was asked.
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			p.late(bound)
		}
	}
}

// begin reports whether the check may be asked: not while it still is.
func (p *prober) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy {
		return false
	}
	p.busy = true
	return true
}

func (p *prober) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.busy, p.err = false, err
}

// late makes the check fail while its answer is overdue.
func (p *prober) late(bound time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy {
		p.err = fmt.Errorf("no answer within %v", bound)
	}
}

// fault is what is wrong; ok is false when nothing is.
func (p *prober) fault() (f Fault, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		return Fault{}, false
	}
	return Fault{Check: p.check.Name, Reason: p.err.Error()}, true
}
