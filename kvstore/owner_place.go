package kvstore

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"github.com/headgate-io/headgate/ratelimit"
)

// places finds the owner of a counter: the node with the greatest hash of node
// and counter, among those that live and are not silent (rendezvous hashing). The
// next one is the deputy, who becomes the owner when that is lost.
// When a node comes or goes only the counters that it gains or loses move, and
// every node that knows of the same others finds the same owner. All methods
// may be called concurrently.
type places struct {
	nodes   liveNodes
	table   atomic.Pointer[table]
	mu      sync.Mutex                          // held to replace silents
	silents atomic.Pointer[map[string]struct{}] // never changed, only replaced; nil: none
}

// table is the list of nodes with their hashes.
type table struct {
	names  []string
	hashes []uint64
}

// mix spreads every bit of its argument over all of the result (the finalizer
// of SplitMix64). It is the same in every process and every release, or else
// nodes would not find the same owner.
func mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// current is the table of the nodes that live now.
func (p *places) current() *table {
	live := p.nodes.Live()
	t := p.table.Load()
	if t != nil && sameSlice(t.names, live) {
		return t
	}
	t = &table{names: live, hashes: make([]uint64, len(live))}
	for i, name := range live {
		t.hashes[i] = xxhash.Sum64String(name)
	}
	p.table.Store(t)
	return t
}

// sameSlice reports whether two lists are the same memory: a list of live nodes
// is replaced when it changes.
func sameSlice(a, b []string) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// owner is the node that settles a counter; empty when there is none.
func (p *places) owner(key ratelimit.Key) string { return p.deputy(key, "") }

// deputy is the node that settles a counter in place of its owner; empty when
// there is none.
func (p *places) deputy(key ratelimit.Key, owner string) string {
	t, silents := p.current(), p.silents.Load()
	hash := xxhash.Sum64String(string(key))
	var best string
	var weight uint64
	for i, name := range t.names {
		w := mix(t.hashes[i] ^ hash)
		if (best == "" || w > weight) && name != owner && !isSilent(silents, name) {
			best, weight = name, w
		}
	}
	return best
}

func isSilent(silents *map[string]struct{}, name string) bool {
	if silents == nil {
		return false
	}
	_, silent := (*silents)[name]
	return silent
}

// silent passes a node over from now on.
func (p *places) silent(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.silents.Load()
	if isSilent(old, name) {
		return
	}
	next := map[string]struct{}{name: {}}
	if old != nil {
		maps.Copy(next, *old)
	}
	p.silents.Store(&next)
}

// spoke passes a node over no longer.
func (p *places) spoke(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.silents.Load()
	if !isSilent(old, name) {
		return
	}
	next := maps.Clone(*old)
	delete(next, name)
	p.silents.Store(&next)
}

// lives reports whether a node is among those that live.
func (p *places) lives(name string) bool { return slices.Contains(p.nodes.Live(), name) }
