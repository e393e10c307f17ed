package kvstore

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/kvstore/recordpb"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// TestJournal tells stories of one counter: exchanges settled here and by
// others, and what is then known about one.
func TestJournal(t *testing.T) {
	const start = counter.Instant(1_700_000_000e9)
	at := func(ms int) counter.Instant { return start.Add(time.Duration(ms) * time.Millisecond) }
	first := func(ms int) itinerary { return itinerary{travels: true, issued: at(ms)} }
	again := func(ms int) itinerary { return itinerary{travels: true, repeated: true, issued: at(ms)} }
	entry := func(node, serial uint64, ms int) settled {
		return settled{name: name{node, serial}, at: at(ms), units: int64(serial), until: at(ms + 100), travels: true}
	}
	elsewhere := func(j *journal) { // as if another node read and wrote it
		pb := &recordpb.Record{}
		j.encode(pb, at(5000))
		var err error
		if *j, err = decodeJournal(pb, at(5000)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		story  string
		happen func(j *journal)
		name   name
		way    itinerary
		want   verdict
	}{
		{"nothing happened", func(*journal) {}, name{1, 1}, again(0), unsettled},
		{"settled here", func(j *journal) { j.add(entry(1, 1, 1)) }, name{1, 1}, again(0), alreadySettled},
		{"settled elsewhere", func(j *journal) { j.add(entry(1, 1, 1)); elsewhere(j) }, name{1, 1}, first(0), alreadySettled},
		{"without a name", func(j *journal) { j.add(settled{at: at(1)}) }, name{}, itinerary{}, unsettled},
		{
			"a later one of the node, settled here: a new one is new",
			func(j *journal) { j.add(entry(1, 9, 1)) }, name{1, 5}, first(0), unsettled,
		},
		{
			"a later one of the node: of a repeated one nothing is known",
			func(j *journal) { j.add(entry(1, 9, 1)) }, name{1, 5}, again(0), cannotTell,
		},
		{
			"a later one of the node, settled elsewhere",
			func(j *journal) { j.add(entry(1, 9, 1)); elsewhere(j) }, name{1, 5}, first(0), cannotTell,
		},
		{
			"another node wrote in between what this one settled",
			func(j *journal) { mine := *j; mine.add(entry(1, 9, 1)); *j = mine; elsewhere(j); j.adopt(mine) },
			name{1, 5}, first(0), unsettled,
		},
		{
			"issued after all that others settled",
			func(j *journal) { j.add(entry(1, 5, 1)); elsewhere(j); j.add(entry(1, 9, 3)) }, name{1, 7}, first(2), unsettled,
		},
		{
			"a greater serial of the node's former life",
			func(j *journal) { j.add(entry(1, 9, 1)); elsewhere(j) }, name{1, 5}, again(2), unsettled,
		},
		{
			"replaced here what was settled elsewhere",
			func(j *journal) { j.add(entry(1, 5, 1)); elsewhere(j); j.add(entry(1, 9, 2)) }, name{1, 5}, first(0), cannotTell,
		},
		{
			"too old, settled here: a new one is new",
			func(j *journal) { j.add(entry(1, 1, 1)); j.add(entry(2, 1, 1002)) }, name{3, 1}, first(0), unsettled,
		},
		{
			"too old, settled here: of a repeated one nothing is known",
			func(j *journal) { j.add(entry(1, 1, 1)); j.add(entry(2, 1, 1002)) }, name{1, 1}, again(0), cannotTell,
		},
		{
			"issued after all that was forgotten",
			func(j *journal) { j.add(entry(1, 1, 1)); j.add(entry(2, 1, 1002)) }, name{3, 1}, again(2), unsettled,
		},
		{
			"forgotten elsewhere",
			func(j *journal) { j.add(entry(1, 1, 1)); j.add(entry(2, 1, 1002)); elsewhere(j) }, name{1, 1}, first(0), cannotTell,
		},
		{
			"forgotten here, settled elsewhere",
			func(j *journal) { j.add(entry(1, 1, 1)); elsewhere(j); j.add(entry(2, 1, 1002)) }, name{1, 1}, first(0), cannotTell,
		},
	} {
		var j journal
		c.happen(&j)
		g, v := j.find(c.name, c.way, 0)
		if v != c.want {
			t.Errorf("%s: verdict %d, want %d", c.story, v, c.want)
		}
		if v == alreadySettled && (g.Units != 1 || g.Until != at(101) || g.At != at(1)) {
			t.Errorf("%s: grant %+v", c.story, g)
		}
	}
}

// TestJournalIsBounded: in nodes and in age.
func TestJournalIsBounded(t *testing.T) {
	const start = counter.Instant(1_700_000_000e9)
	var j journal
	for i := range uint64(10 * journalEntries) {
		j.add(settled{name: name{i, 1}, at: start.Add(time.Duration(i)), travels: true})
	}
	if len(j.entries) != journalEntries {
		t.Errorf("%d entries of as many nodes, want %d", len(j.entries), journalEntries)
	}
	j.add(settled{name: name{1 << 40, 1}, at: start.Add(time.Minute), travels: true})
	if len(j.entries) != 1 {
		t.Errorf("%d entries after a minute, want 1", len(j.entries))
	}
}
