package ratelimit

import "sync"

// dispatcher runs the exchanges of cells, at most max at once, urgent ones
// first. Its workers come when there is work and go when there is none.
type dispatcher struct {
	max int
	run func(*cell)

	mu      sync.Mutex
	urgent  []*cell // somebody waits, or the counter is near its limit
	normal  []*cell
	workers int
	closed  bool // nothing is pushed any more
	idle    sync.WaitGroup
}

// push lets a worker run the cell's exchange. The caller makes sure that a cell
// is pushed once at a time. After wait it does nothing: who waits for the exchange
// waits as for a store that does not answer.
func (d *dispatcher) push(c *cell, urgent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return
	}
	if urgent {
		d.urgent = append(d.urgent, c)
	} else {
		d.normal = append(d.normal, c)
	}
	if d.workers < d.max {
		d.workers++
		d.idle.Go(d.work)
	}
}

func (d *dispatcher) work() {
	for {
		c := d.pop()
		if c == nil {
			return
		}
		d.run(c)
	}
}

// pop returns the next cell; nil when there is none, and then the worker is
// gone.
func (d *dispatcher) pop() *cell {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, queue := range []*[]*cell{&d.urgent, &d.normal} {
		if q := *queue; len(q) > 0 {
			c := q[0]
			q[0] = nil
			*queue = q[1:]
			return c
		}
	}
	d.workers--
	return nil
}

// busy reports whether any exchange is under way or about to be.
func (d *dispatcher) busy() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.workers > 0
}

// wait lets nothing more be pushed and waits until all workers are gone.
func (d *dispatcher) wait() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.idle.Wait()
}
