package kvstore

import (
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/ratelimit"
)

// tell goes on with the story of a seed that is run alone.
func (w *simWorld) tell(format string, args ...any) {
	if *simOne < 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told(format, args...)
}

// told is tell for who holds the lock.
func (w *simWorld) told(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%12v ", w.since(w.truth.Now()))+fmt.Sprintf(format, args...))
}

// tellExchange tells what a limiter learned, but for reads.
func (w *simWorld) tellExchange(lf *simLife, x ratelimit.Exchange, g ratelimit.Grant, err error) {
	if err == nil && g.Units == 0 && !brings(x) {
		return
	}
	w.tell("%s exchange %d of %s (repeat: %v): needs %v want %d returns %v posts %v: %d units, %v",
		lf.node.name, simSerial(x.Serial), x.Key, x.Issued != 0, x.Needs, x.Want, x.Returns, x.Posts, g.Units, err)
}

// simSerial is as much of a serial as tells exchanges apart.
func simSerial(serial uint64) uint64 { return serial % 100_000 }

// toldWrite tells what the store now counts, and whose exchanges the record
// remembers. The lock is held.
func (w *simWorld) toldWrite(b *simBook, rec *record) {
	if *simOne < 0 {
		return
	}
	names := make(map[uint64]string)
	for _, n := range w.nodes {
		names[nameOf(ratelimit.Exchange{Node: n.name, Serial: 1}).node] = n.name
	}
	var line strings.Builder
	for _, r := range w.sc.rates(b.tier) {
		fmt.Fprintf(&line, " %d of %v", simUsed(r, rec.counter, rec.counter.Seen), r)
	}
	for _, e := range rec.journal.entries {
		fmt.Fprintf(&line, ", %s %d: %d at %v", names[e.node], simSerial(e.serial), e.units, w.since(e.at))
	}
	w.told("store: %s by %s:%s", b.key, rec.writer, line.String())
}

// simTally is what happened in some seeds.
type simTally struct {
	seeds, decided, admitted, degraded    int64
	answered, declined, silent, deputized int64
	conflicts, late, forgotten, balanced  int64
}

func (w *simWorld) tally() simTally {
	count := func(r askResult) int64 { return int64(testutil.ToFloat64(w.metrics.asks[r])) }
	return simTally{
		seeds: 1, decided: w.decided.Load(), admitted: w.admitted.Load(), degraded: w.degraded.Load(),
		answered: count(askAnswered), declined: count(askDeclined), silent: count(askSilent), deputized: count(askDeputized),
		conflicts: int64(w.store.conflicts), late: int64(w.net.late),
		forgotten: int64(w.forgotten), balanced: w.balanced.Load(),
	}
}

func (a *simTally) add(b simTally) {
	a.seeds += b.seeds
	a.decided += b.decided
	a.admitted += b.admitted
	a.degraded += b.degraded
	a.answered += b.answered
	a.declined += b.declined
	a.silent += b.silent
	a.deputized += b.deputized
	a.conflicts += b.conflicts
	a.late += b.late
	a.forgotten += b.forgotten
	a.balanced += b.balanced
}

func (a simTally) String() string {
	return fmt.Sprintf("%d seeds: %d decided, %d admitted, %d degraded; owners: %d answered, %d declined, %d silent, %d deputized; %d conflicts, %d late, %d forgotten; %d books balanced to the unit",
		a.seeds, a.decided, a.admitted, a.degraded, a.answered, a.declined, a.silent, a.deputized, a.conflicts, a.late, a.forgotten, a.balanced)
}
