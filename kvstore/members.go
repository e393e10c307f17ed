package kvstore

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// members is the list of nodes as heartbeats tell it. Its time stands still
// while the store takes no heartbeat of this node: a store that is away makes no
// node look dead, so the list stays as last known. To hear somebody is not
// enough, since a server in this process, cut off from all others, still passes
// on what this node says.
type members struct {
	self string
	ttl  time.Duration
	// pause is the longest time between two heartbeats that the store took from
	// this node that counts in full.
	pause time.Duration

	mu      sync.Mutex
	last    time.Duration // when the store took a heartbeat, by the caller's clock
	elapsed time.Duration // time with the store speaking
	nodes   map[string]member

	apart  atomic.Int64             // see wallsApart
	owners atomic.Pointer[[]string] // sorted
	alive  atomic.Int64             // nodes not silent, draining ones and this one included
}

// member is a node as last heard.
type member struct {
	seen time.Duration // by members.elapsed
	beat heartbeat
	// offset would put this node on that one's clock; known only when synced
	// is true: the node was, and we heard it ourselves.
	offset int64
	synced bool
}

func newMembers(self string, interval, ttl time.Duration) *members {
	m := &members{
		self:  self,
		ttl:   ttl,
		pause: 2 * interval,
		nodes: make(map[string]member),
	}
	m.owners.Store(new([]string))
	m.alive.Store(1)
	return m
}

// Live lists the nodes that take exchanges for others: those that were heard
// lately and said so. It is sorted and belongs to all callers alike: none may
// change it.
func (m *members) Live() []string { return *m.owners.Load() }

// count is how many nodes are alive, at least 1.
func (m *members) count() int { return int(m.alive.Load()) }

// hear takes a heartbeat that came at now, by a clock that only moves forward.
func (m *members) hear(now time.Duration, name string, b heartbeat) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.nodes[name] = member{
		seen: m.elapsed, beat: b,
		offset: int64(b.At) - int64(now), synced: b.At != 0,
	}
	m.settle()
}

// find takes a heartbeat that was found in the bucket, age old by the store's
// stamps. What was heard itself is fresher and stands.
func (m *members) find(name string, b heartbeat, age time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.nodes[name]; !ok && age <= m.ttl {
		m.nodes[name] = member{seen: m.elapsed - max(age, 0), beat: b}
	}
	m.settle()
}

// leave takes a node's good-bye.
func (m *members) leave(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.nodes, name)
	m.settle()
}

// answered notes that the store took a heartbeat of this node at now, by a clock
// that only moves forward.
func (m *members) answered(now time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.advance(now)
	m.settle()
}

// advance moves the list's time on. Called with the lock held.
func (m *members) advance(now time.Duration) {
	m.elapsed += min(max(now-m.last, 0), m.pause)
	m.last = max(m.last, now)
}

// settle drops who is silent and publishes the rest. Called with the lock held.
func (m *members) settle() {
	owners := make([]string, 0, len(m.nodes))
	alive := int64(1)
	for name, n := range m.nodes {
		if m.elapsed-n.seen > m.ttl {
			delete(m.nodes, name)
			continue
		}
		if name != m.self {
			alive++
		}
		if n.beat.Owner {
			owners = append(owners, name)
		}
	}
	m.alive.Store(alive)
	m.compareWalls()
	slices.Sort(owners)
	if slices.Equal(owners, *m.owners.Load()) {
		return // whoever holds the list may compare it by its address
	}
	m.owners.Store(&owners)
}

// maxApart bounds [members.wallsApart]: a node whose wall clock is beyond all
// sense shall not make records that never expire.
const maxApart = 24 * time.Hour

// wallsApart is by how much the wall clocks of two nodes that were there at the
// same time differed at most, since this process began, up to maxApart.
func (m *members) wallsApart() time.Duration { return time.Duration(m.apart.Load()) }

// compareWalls keeps [members.wallsApart]. Called with the lock held.
func (m *members) compareWalls() {
	var low, high time.Duration
	first := true
	for _, n := range m.nodes {
		if n.beat.At == 0 {
			continue
		}
		if first {
			low, high, first = n.beat.Offset, n.beat.Offset, false
		}
		low, high = min(low, n.beat.Offset), max(high, n.beat.Offset)
	}
	if apart := int64(min(high-low, maxApart)); apart > m.apart.Load() {
		m.apart.Store(apart)
	}
}

// gathered reports whether as many nodes are there as wanted and none of them
// is still growing, see [heartbeat].
func (m *members) gathered(wanted int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.nodes {
		if n.beat.Growing {
			return false
		}
	}
	return len(m.nodes) >= wanted
}

// offsets lists those that would put this node on the clocks of other synced
// nodes that are up for longer than uptime.
func (m *members) offsets(uptime time.Duration) []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	var o []int64
	for name, n := range m.nodes {
		if name != m.self && n.synced && n.beat.Uptime > uptime {
			o = append(o, n.offset)
		}
	}
	return o
}
