package ratelimit

import (
	"sync"
)

// idleEpochs is after how many epochs without use a cell is forgotten. An epoch
// is half of Config.IdleAfter.
const idleEpochs = 3

// roster lists all cells that are in the map, so that they can be gone through
// a few at a time.
type roster struct {
	mu    sync.Mutex
	cells []*cell
	hand  int
}

func (r *roster) add(c *cell) {
	r.mu.Lock()
	r.cells = append(r.cells, c)
	r.mu.Unlock()
}

// sweep offers the next n cells to drop and takes out those that it drops.
func (r *roster) sweep(n int, drop func(*cell) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for range min(n, len(r.cells)) {
		if r.hand >= len(r.cells) {
			r.hand = 0
		}
		if !drop(r.cells[r.hand]) {
			r.hand++
			continue
		}
		last := len(r.cells) - 1
		r.cells[r.hand], r.cells[last] = r.cells[last], nil
		r.cells = r.cells[:last]
	}
	if cap(r.cells) > 4*len(r.cells)+1024 {
		r.cells = append(make([]*cell, 0, 2*len(r.cells)), r.cells...)
	}
}

func (r *roster) size() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.cells)
}

// evict goes through a share of the cells, all of them once per epoch, and
// forgets those that nobody used for a while and that owe nothing.
func (l *Limiter) evict() {
	share := int(int64(l.roster.size())*int64(2*l.cfg.SyncInterval)/int64(l.cfg.IdleAfter)) + 16
	epoch := l.epoch.Load()
	l.roster.sweep(share, func(c *cell) bool {
		if epoch-c.used.Load() < idleEpochs {
			return false
		}
		c.mu.Lock()
		busy := c.active || c.work != nil
		c.mu.Unlock()
		if busy {
			return false
		}
		c.scope.drop(c)
		l.cells.Add(-1)
		return true
	})
}
