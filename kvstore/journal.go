package kvstore

import (
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/headgate-io/headgate/kvstore/recordpb"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Bounds of a [journal].
const (
	// journalAge is longer than any repeat may take: an owner is given up after
	// tens of milliseconds.
	journalAge = time.Second
	// journalEntries holds what a counter that everybody wants settles in the
	// time an owner is given, at about 17 bytes each.
	journalEntries = 64
)

// journal is the exchanges of one counter that were settled lately, so that one
// which is asked for a second time, because the first answer never came, is
// answered and not applied again. It travels inside the record: then whoever
// settles the repeat, the first owner, the next one or the node itself, knows.
type journal struct {
	entries []settled // oldest first
	// forgotten is when the newest exchange was settled that could be repeated
	// and is no longer listed; 0: there is none. Whether an exchange issued
	// before it was settled cannot be told.
	forgotten counter.Instant
}

// settled is one exchange that changed its counter.
type settled struct {
	name  uint64 // see exchangeName
	at    counter.Instant
	units int64
	until counter.Instant
	// elsewhere: a repeat may be settled by another node, so the record must
	// tell it.
	elsewhere bool
}

// exchangeName is a hash of what names an exchange; 0: it has no name. One of
// 2^58 repeats meets a foreign exchange of the same hash in a full journal.
func exchangeName(node string, serial uint64) uint64 {
	if node == "" || serial == 0 {
		return 0
	}
	return max(1, mix(xxhash.Sum64String(node)^mix(serial)))
}

// mix spreads every bit of its argument over all of the result (the finalizer
// of SplitMix64). It is the same in every process and every release: owners are
// found with it.
func mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// find returns the grant that the exchange of that name came to.
func (j *journal) find(name uint64) (ratelimit.Grant, bool) {
	if name == 0 {
		return ratelimit.Grant{}, false
	}
	for _, s := range j.entries {
		if s.name == name {
			return ratelimit.Grant{Units: s.units, Until: s.until, At: s.at}, true
		}
	}
	return ratelimit.Grant{}, false
}

// add notes an exchange and lets go of the oldest ones.
func (j *journal) add(s settled) {
	if s.name == 0 {
		return
	}
	drop := 0
	for _, e := range j.entries {
		if len(j.entries)-drop < journalEntries && s.at.Sub(e.at) <= journalAge {
			break
		}
		if e.elsewhere {
			j.forgotten = max(j.forgotten, e.at)
		}
		drop++
	}
	j.entries = append(j.entries[drop:], s)
}

// clone shares no memory with j.
func (j *journal) clone() journal {
	own := make([]settled, len(j.entries), len(j.entries)+4)
	copy(own, j.entries)
	return journal{entries: own, forgotten: j.forgotten}
}

// adopt takes over from an older memory of the same counter what the record
// does not carry: the exchanges that this node alone can repeat.
func (j *journal) adopt(old journal) {
	for _, s := range old.entries {
		if !s.elsewhere {
			j.entries = append(j.entries, s)
		}
	}
}

// encode writes what other nodes must know.
func (j *journal) encode(pb *recordpb.Record, seen counter.Instant) {
	for _, s := range j.entries {
		if !s.elsewhere {
			continue
		}
		pb.Settled = append(pb.Settled, s.name)
		pb.SettledGrants = append(pb.SettledGrants,
			int64(seen.Sub(s.at)), s.units, int64(s.until.Sub(seen)))
	}
	if j.forgotten != 0 {
		pb.Forgotten = int64(max(1, seen.Sub(j.forgotten)))
	}
}

func decodeJournal(pb *recordpb.Record, seen counter.Instant) (journal, error) {
	names, grants := pb.GetSettled(), pb.GetSettledGrants()
	if len(grants) != 3*len(names) {
		return journal{}, fmt.Errorf("%d grants of %d settled exchanges", len(grants), len(names))
	}
	var j journal
	if pb.GetForgotten() < 0 {
		return journal{}, fmt.Errorf("forgotten %d is negative", pb.GetForgotten())
	}
	if pb.GetForgotten() > 0 {
		j.forgotten = seen.Add(-time.Duration(pb.GetForgotten()))
	}
	for i, name := range names {
		j.entries = append(j.entries, settled{
			name:      name,
			at:        seen.Add(-time.Duration(grants[3*i])),
			units:     grants[3*i+1],
			until:     seen.Add(time.Duration(grants[3*i+2])),
			elsewhere: true,
		})
	}
	return j, nil
}
