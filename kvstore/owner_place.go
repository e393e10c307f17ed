package kvstore

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/headgate-io/headgate/ratelimit"
)

// places finds the owner of a counter: the node with the greatest hash of node
// and counter, among those that live and were not silent lately (rendezvous
// hashing). When a node comes or goes only the counters that it gains or loses
// move, and every node that knows of the same others finds the same owner. All
// methods may be called concurrently.
type places struct {
	nodes   liveNodes
	cfg     ownerConfig
	table   atomic.Pointer[table]
	mu      sync.Mutex                         // held to change silent
	silents atomic.Pointer[map[string]silence] // nil or never changed, only replaced
}

// table is the list of nodes with their hashes.
type table struct {
	names  []string
	hashes []uint64
}

// silence is a node that owed an answer.
type silence struct {
	until time.Time     // when it is worth another try
	span  time.Duration // doubles each time
	tried bool          // one exchange tries it now
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
func (p *places) owner(key ratelimit.Key, now time.Time) string {
	t := p.current()
	for range len(t.names) {
		if name := t.best(key, p.quiet(now)); p.mayAsk(name, now) {
			return name
		}
		// Somebody else tries it at this moment: it is quiet for us now.
	}
	return ""
}

// best is the node with the greatest hash that is not quiet.
func (t *table) best(key ratelimit.Key, q quiet) string {
	hash := xxhash.Sum64String(string(key))
	var best string
	var weight uint64
	for i, name := range t.names {
		w := mix(t.hashes[i] ^ hash)
		if (best == "" || w > weight) && !q.has(name) {
			best, weight = name, w
		}
	}
	return best
}

// quiet is the nodes to pass over.
type quiet struct {
	silents *map[string]silence
	now     time.Time
}

func (p *places) quiet(now time.Time) quiet { return quiet{silents: p.silents.Load(), now: now} }

func (q quiet) has(name string) bool {
	if q.silents == nil {
		return false
	}
	s, ok := (*q.silents)[name]
	return ok && q.now.Before(s.until)
}

// mayAsk reports whether a node that is not quiet may be asked. After a silence
// one exchange tries it while the others still pass it over.
func (p *places) mayAsk(name string, now time.Time) bool {
	if silents := p.silents.Load(); silents == nil || (*silents)[name].span == 0 {
		return true
	}
	allowed := true
	p.change(func(silents map[string]silence) {
		s, ok := silents[name]
		if !ok {
			return
		}
		if allowed = !now.Before(s.until); allowed {
			s.until, s.tried = now.Add(2*p.cfg.Answer), true
			silents[name] = s
		}
	})
	return allowed
}

// silent notes that a node owed an answer; it is passed over for a while.
func (p *places) silent(name string, now time.Time) {
	p.change(func(silents map[string]silence) {
		s := silents[name]
		if now.Before(s.until) && !s.tried {
			return // others were faster to notice the same silence
		}
		s.span = min(max(2*s.span, p.cfg.SilenceLeast), p.cfg.SilenceMost)
		s.until, s.tried = now.Add(s.span), false
		silents[name] = s
	})
}

// spoke notes that a node answered.
func (p *places) spoke(name string) {
	silents := p.silents.Load()
	if silents == nil {
		return
	}
	if _, ok := (*silents)[name]; !ok {
		return
	}
	p.change(func(silents map[string]silence) { delete(silents, name) })
}

// change replaces the silent nodes. Those that left the list are forgotten.
func (p *places) change(edit func(map[string]silence)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := make(map[string]silence)
	if old := p.silents.Load(); old != nil {
		for _, name := range p.nodes.Live() {
			if s, ok := (*old)[name]; ok {
				next[name] = s
			}
		}
	}
	edit(next)
	if len(next) == 0 {
		p.silents.Store(nil)
		return
	}
	p.silents.Store(&next)
}
