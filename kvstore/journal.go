package kvstore

import (
	"fmt"
	"slices"
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
	// journalEntries bounds the nodes that ask for one counter within
	// journalAge, at about 25 bytes each; beyond it the oldest is forgotten.
	journalEntries = 128
)

// journal is the exchanges of one counter that were settled lately, so that one
// which is asked for a second time, because the first answer never came, is
// answered and not applied again. It travels inside the record: then whoever
// settles the repeat, the first owner, the next one or the node itself, knows.
//
// A node that deals with a counter again has had its answer before, so a later
// exchange replaces the earlier ones of its node. Serials of one node rise.
type journal struct {
	entries []settled // oldest first
	// forgotten is when the newest of the travelling exchanges was settled that
	// are neither listed nor replaced; 0: there is none. Of one issued before
	// it cannot be told whether it was settled.
	forgotten counter.Instant
	// foreign is the same for exchanges that others than this node settled.
	foreign counter.Instant
}

// settled is one exchange that changed its counter.
type settled struct {
	name
	at    counter.Instant
	units int64
	until counter.Instant
	// travels: another node may be asked for it too, so the record must tell
	// it. The others this node remembers for itself.
	travels bool
	// foreignAt is when others than this node last settled what it stands for:
	// itself, or an exchange that it replaced; 0: they did not.
	foreignAt counter.Instant
}

// name is what tells exchanges apart: a hash of the node, and its serial. The
// zero name: it has none.
type name struct{ node, serial uint64 }

func nameOf(x ratelimit.Exchange) name {
	if x.Node == "" || x.Serial == 0 {
		return name{}
	}
	return name{node: xxhash.Sum64String(x.Node), serial: x.Serial}
}

// verdict is what a journal knows about an exchange.
type verdict uint8

const (
	unsettled verdict = iota
	alreadySettled
	cannotTell
)

// find says whether an exchange was settled, and the grant that it came to.
// doubt bounds how far the clocks of two nodes differ.
//
// An exchange that comes for the first time can only have been settled by
// others: this node's own memory has no gap for it. For a repeated one it
// counts who settled what, no matter who.
func (j *journal) find(n name, way itinerary, doubt time.Duration) (ratelimit.Grant, verdict) {
	if n == (name{}) {
		return ratelimit.Grant{}, unsettled
	}
	// Nothing that was settled before can be this one.
	earliest := way.issued.Add(-doubt)
	replaced := false
	for _, s := range j.entries {
		if s.name == n {
			return ratelimit.Grant{Units: s.units, Until: s.until, At: s.at}, alreadySettled
		}
		last := s.foreignAt
		if way.repeated {
			last = s.at
		}
		if s.travels && s.node == n.node && s.serial > n.serial && last != 0 && last >= earliest {
			replaced = true
		}
	}
	horizon := j.foreign
	if way.repeated {
		horizon = j.forgotten
	}
	if way.travels && (replaced || horizon != 0 && horizon >= earliest) {
		return ratelimit.Grant{}, cannotTell
	}
	return ratelimit.Grant{}, unsettled
}

// add notes an exchange that this node settled. It replaces the earlier ones of
// its node, and lets go of the oldest ones.
func (j *journal) add(s settled) {
	if s.name == (name{}) {
		return
	}
	j.entries = slices.DeleteFunc(j.entries, func(e settled) bool {
		if e.node != s.node || e.travels != s.travels || e.serial > s.serial {
			return false
		}
		s.foreignAt = max(s.foreignAt, e.foreignAt)
		return true
	})
	drop := 0
	for _, e := range j.entries {
		if len(j.entries)-drop < journalEntries && s.at.Sub(e.at) <= journalAge {
			break
		}
		j.forget(e)
		drop++
	}
	j.entries = append(slices.Delete(j.entries, 0, drop), s)
}

func (j *journal) forget(e settled) {
	if !e.travels {
		return
	}
	j.forgotten = max(j.forgotten, e.at)
	j.foreign = max(j.foreign, e.foreignAt)
}

// clone shares no memory with j.
func (j *journal) clone() journal {
	own := *j
	own.entries = make([]settled, len(j.entries), len(j.entries)+4)
	copy(own.entries, j.entries)
	return own
}

// adopt takes over from an older memory of the same counter what the record
// does not carry: what of it this node settled, and the exchanges that only this
// node can repeat.
func (j *journal) adopt(old journal) {
	if j.forgotten == old.forgotten {
		j.foreign = old.foreign
	}
	for _, s := range old.entries {
		if !s.travels {
			j.entries = append(j.entries, s)
			continue
		}
		if i := slices.IndexFunc(j.entries, func(e settled) bool { return e.name == s.name }); i >= 0 {
			j.entries[i].foreignAt = s.foreignAt
		}
	}
}

// encode writes what other nodes must know.
func (j *journal) encode(pb *recordpb.Record, seen counter.Instant) {
	for _, s := range j.entries {
		if !s.travels {
			continue
		}
		pb.Settled = append(pb.Settled, s.node, s.serial)
		pb.SettledGrants = append(pb.SettledGrants,
			int64(seen.Sub(s.at)), s.units, int64(s.until.Sub(seen)))
	}
	if j.forgotten != 0 {
		pb.Forgotten = int64(max(1, seen.Sub(j.forgotten)))
	}
}

// decodeJournal reads a journal; all in it counts as settled by others.
func decodeJournal(pb *recordpb.Record, seen counter.Instant) (journal, error) {
	names, grants := pb.GetSettled(), pb.GetSettledGrants()
	if len(names)%2 != 0 || len(grants) != len(names)/2*3 {
		return journal{}, fmt.Errorf("%d numbers name %d grants", len(names), len(grants))
	}
	if pb.GetForgotten() < 0 {
		return journal{}, fmt.Errorf("forgotten %d is negative", pb.GetForgotten())
	}
	var j journal
	if pb.GetForgotten() > 0 {
		j.forgotten = seen.Add(-time.Duration(pb.GetForgotten()))
		j.foreign = j.forgotten
	}
	for i := range len(names) / 2 {
		at := seen.Add(-time.Duration(grants[3*i]))
		j.entries = append(j.entries, settled{
			name:      name{node: names[2*i], serial: names[2*i+1]},
			at:        at,
			units:     grants[3*i+1],
			until:     seen.Add(time.Duration(grants[3*i+2])),
			travels:   true,
			foreignAt: at,
		})
	}
	return j, nil
}
