package storetest

import (
	"slices"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// apply settles one exchange. The caller holds the lock.
func (m *Memory) apply(x ratelimit.Exchange, now counter.Instant, conflicts int) ratelimit.Grant {
	id := exchangeID{x.Node, x.Serial}
	if g, ok := m.answers[id]; ok && x.Node != "" {
		m.stats.Repeats++
		return owned(g)
	}
	before := m.counters[x.Key]
	next, grant, changed := ratelimit.Settle(before, x, now)
	for range conflicts {
		// Another writer was first; the same exchange is decided once more.
		m.stats.Conflicts++
		next, grant, changed = ratelimit.Settle(before, x, now)
	}
	if changed {
		m.stats.Writes++
		m.counters[x.Key] = next
	} else {
		m.stats.Reads++
	}
	m.observe(Applied{Exchange: x, Before: before, Grant: owned(grant)})
	m.remember(id, owned(grant))
	return grant
}

// remember keeps the answer for a repeated request; the oldest ones go.
func (m *Memory) remember(id exchangeID, g ratelimit.Grant) {
	if id.node == "" {
		return
	}
	m.answers[id] = g
	m.recent = append(m.recent, id)
	if len(m.recent) > maxRemembered {
		delete(m.answers, m.recent[0])
		m.recent = m.recent[1:]
	}
}

// catchUp applies what arrived late, each at its own instant and in that order.
// The caller holds the lock.
func (m *Memory) catchUp(now counter.Instant) {
	if len(m.late) == 0 {
		return
	}
	slices.SortStableFunc(m.late, func(a, b delayed) int { return int(a.at - b.at) })
	due := 0
	for ; due < len(m.late) && m.late[due].at <= now; due++ {
		m.apply(m.late[due].x, m.late[due].at, 0)
	}
	m.late = slices.Delete(m.late, 0, due)
}

// owned is g with a state of its own.
func owned(g ratelimit.Grant) ratelimit.Grant {
	g.State = g.State.Clone()
	return g
}

// SetAway takes the store away or brings it back. What was on its way to a
// silent store when it returns stays lost.
func (m *Memory) SetAway(a Away) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = a
}

// State returns the counter as it is now; the zero Counter for a key that was
// never used. It belongs to the caller.
func (m *Memory) State(key ratelimit.Key) counter.Counter {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUp(m.clock.Now())
	c := m.counters[key]
	return c.Clone()
}

// Keys returns the names of all counters that were ever written, sorted.
func (m *Memory) Keys() []ratelimit.Key {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.catchUp(m.clock.Now())
	keys := make([]ratelimit.Key, 0, len(m.counters))
	for k := range m.counters {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Stats returns the counts so far.
func (m *Memory) Stats() Stats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stats
}
