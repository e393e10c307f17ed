package sim

import (
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// audit compares the store's counters with the admissions: every one that is
// still of account is charged. Those that a node took to its grave are not:
// uncharged ones of a node that crashed, or that could not settle. What was
// spent of a token bucket without the store more than a period ago may have
// drained when it is posted.
func (w *world) audit() {
	now := w.truth.Now()
	for _, b := range w.ledger.pages() {
		state := w.mem.State(b.key)
		for r, entries := range b.rules() {
			w.auditRule(b, r, entries, state, now)
		}
	}
}

func (w *world) auditRule(b *book, r rule, entries []entry, state counter.Counter, now counter.Instant) {
	var charged []entry
	for _, e := range entries {
		late := r.algorithm == counter.TokenBucket && e.degraded && (now.Sub(e.to) > r.period || !w.keepsAll())
		if (!e.life.lost || !uncharged(e)) && !late {
			charged = append(charged, e)
		}
	}
	switch r.algorithm {
	case counter.Sliding:
		w.auditSliding(b, r, charged, state, now)
	case counter.Fixed:
		w.auditFixed(b, r, charged, state, now)
	default:
		w.auditBucket(b, r, charged, state, now)
	}
}

// usedOf is what a counter holds of a rule.
func usedOf(r rule, units int64, state counter.Counter, now counter.Instant) int64 {
	wide := counter.Rate{Units: counter.MaxUnits, Period: r.period, Algorithm: r.algorithm}
	if r.algorithm == counter.TokenBucket {
		wide.Units, wide.Burst = units, counter.MaxUnits
	}
	return counter.MaxUnits - state.AvailableOf(wide, now)
}

func (w *world) auditSliding(b *book, r rule, charged []entry, state counter.Counter, now counter.Instant) {
	slice := counter.Rate{Period: r.period}.Slice()
	var least, most int64
	for _, e := range charged {
		if now.Sub(e.from) < r.period-w.sc.clockOff {
			least += e.cost
		}
		if now.Sub(e.to) <= r.period+3*slice+w.dating(e) {
			most += e.cost
		}
	}
	used := usedOf(r, 0, state, now)
	if used < least {
		w.fault("%s: forgotten: %d admitted in the last %v, the store knows of %d", b.key, least, r.period, used)
	}
	if w.closed && w.exact(b, charged) && used > most {
		w.fault("%s: kept: %d admitted in the last %v, the store counts %d", b.key, most, r.period, used)
	}
}

// exact reports whether the books must balance to the unit, so that nothing is
// charged that was not admitted: where nobody died and no doubt was forgotten,
// but for units that were posted and then taken back.
func (w *world) exact(b *book, charged []entry) bool {
	lost := slices.ContainsFunc(w.lives, func(lf *life) bool { return lf.lost })
	posted := slices.ContainsFunc(charged, uncharged)
	return !lost && w.mem.Stats().Forgotten == 0 && !(posted && w.severalTiers(b))
}

// uncharged reports whether an admission was to be posted.
func uncharged(e entry) bool { return e.degraded || e.policy.Consistency == ratelimit.Delayed }

// dating is how much later than it was an admission without a charge may be
// posted as: as the end of the lease that the node granted itself.
func (w *world) dating(e entry) time.Duration {
	if !uncharged(e) {
		return 0
	}
	return w.sc.config.SyncInterval + w.sc.config.Attempt + w.sc.config.LeaseLife + 2*w.sc.clockOff
}

func (w *world) auditFixed(b *book, r rule, charged []entry, state counter.Counter, now counter.Instant) {
	var opened counter.Instant
	for _, win := range state.Windows {
		if ruleOf(counter.Rate{Period: win.Period, Algorithm: win.Algorithm}) == r {
			opened = win.Opened
		}
	}
	if opened == 0 || now >= opened.Add(r.period) || b.late[opened] {
		return // a late one may overlap with the window that counted some of them
	}
	// What was admitted without the store a little before a window opened belongs
	// to it; how much that is cannot be told from here.
	posted := slices.ContainsFunc(charged, uncharged)
	// What was posted into a window that opened after it, and then handed back,
	// stays: nothing tells the store that it was not of an earlier window.
	least, most := int64(0), b.early[opened]
	for _, e := range charged {
		if e.from >= opened.Add(w.sc.clockOff+w.dating(e)) {
			least += e.cost
		}
		if e.to >= opened.Add(-w.dating(e)) {
			most += e.cost
		}
	}
	used := usedOf(r, 0, state, now)
	if used < least {
		w.fault("%s: forgotten: %d admitted since the window of %v opened, the store knows of %d", b.key, least, r.period, used)
	}
	if w.closed && w.exact(b, charged) && !posted && used > most {
		w.fault("%s: kept: %d admitted since the window of %v opened, the store counts %d", b.key, most, r.period, used)
	}
}

// auditBucket compares levels. A lease is charged up to its life before it is
// spent, so the store's level may be lower by what drains meanwhile, and by a
// unit for the fraction that a whole number cannot show.
//
// What a node admitted without the store drains from when it was admitted, as far
// as the bucket still knows what drained since. One that was handed back to empty
// does not: so only what comes of each node's own, and of the rest, must be there.
func (w *world) auditBucket(b *book, r rule, charged []entry, state counter.Counter, now counter.Instant) {
	units := w.unchanged(b, r, charged)
	if units == 0 {
		return // the rate changed; the levels are not comparable
	}
	perNano := float64(units) / float64(r.period)
	var level float64
	for _, apart := range byWhoPosts(charged) {
		level = max(level, levelOf(apart, perNano, now))
	}
	used := float64(usedOf(r, units, state, now))
	if used < level-perNano*float64(b.longest)-1 {
		w.fault("%s: forgotten: %d per %v, burst %d: the level is %.1f, the store says %.0f",
			b.key, units, r.period, charged[0].rate.Capacity(), level, used)
	}
}

// byWhoPosts sorts admissions by the life that made them without the store; all
// others are nobody's.
func byWhoPosts(entries []entry) map[*life][]entry {
	apart := make(map[*life][]entry)
	for _, e := range entries {
		who := e.life
		if !e.degraded {
			who = nil
		}
		apart[who] = append(apart[who], e)
	}
	return apart
}

// levelOf is how full admissions leave a bucket that drains at a rate.
func levelOf(entries []entry, perNano float64, now counter.Instant) float64 {
	var level float64
	var last counter.Instant
	for i, e := range entries {
		if i > 0 {
			level = max(0, level-perNano*float64(e.to.Sub(last)))
		}
		level += float64(e.cost)
		last = e.to
	}
	return level - perNano*float64(now.Sub(last))
}

// unchanged is the units of a rule that were the same all along; 0 when they
// were not.
func (w *world) unchanged(b *book, r rule, entries []entry) int64 {
	f := w.sc.functions[b.function]
	var units int64
	for _, p := range f.policies[:w.revision[b.function]+1] {
		for _, rate := range ratesOf(p, b.tier, b.account) {
			if ruleOf(rate) != r {
				continue
			}
			if units != 0 && rate.Units != units {
				return 0
			}
			units = rate.Units
		}
	}
	if len(entries) == 0 || len(ratesOf(w.finder.current(f.name), b.tier, b.account)) == 0 {
		return 0
	}
	return units
}
