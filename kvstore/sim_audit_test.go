package kvstore

import (
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// audit compares the store's counters with the admissions when everybody has
// settled: every one that is still of account is charged, and, where nobody
// died and nothing was forgotten, nothing else is. Those that a node took to
// its grave are not charged: uncharged ones of a node that crashed, or that
// could not settle.
func (w *simWorld) audit() {
	now := w.truth.Now()
	for _, b := range w.books {
		var state counter.Counter
		if rec := w.store.record(simSubjects + string(b.key)); rec != nil {
			state = rec.counter
		}
		charged := slices.DeleteFunc(slices.Clone(b.admitted), func(a simAdmission) bool {
			return a.life.lost.Load() && w.uncharged(a)
		})
		for _, r := range w.sc.rates(b.tier) {
			switch r.Algorithm {
			case counter.Sliding:
				w.auditSliding(b, r, charged, state, now)
			case counter.Fixed:
				w.auditFixed(b, r, charged, state, now)
			default:
				w.auditBucket(b, r, charged, state, now)
			}
		}
	}
}

// uncharged reports whether an admission was to be posted.
func (w *simWorld) uncharged(a simAdmission) bool {
	return a.degraded || w.sc.policy.Consistency == ratelimit.Delayed
}

// exact reports whether a book must balance to the unit. Units that were posted
// and then taken back, since a later tier denied, may be held a little longer.
func (w *simWorld) exact(b *simBook) bool {
	lost := slices.ContainsFunc(w.lives, func(lf *simLife) bool { return lf.lost.Load() })
	posted := w.degraded.Load() > 0 || w.sc.policy.Consistency == ratelimit.Delayed
	tiers := 0
	for _, rates := range [][]counter.Rate{w.sc.policy.Subject, w.sc.policy.Account, w.sc.policy.Total} {
		tiers += min(1, len(rates))
	}
	return !lost && !b.forgotten && !(posted && tiers > 1)
}

// dating is how much later than it was an admission without a charge may be
// posted as: as the end of the lease that the node granted itself.
func (w *simWorld) dating(a simAdmission) time.Duration {
	if !w.uncharged(a) {
		return 2 * w.sc.clockOff
	}
	return w.sc.config.SyncInterval + w.sc.config.Attempt + w.sc.config.LeaseLife + 2*w.sc.clockOff
}

// simUsed is what a counter holds of a rate.
func simUsed(r counter.Rate, state counter.Counter, now counter.Instant) int64 {
	if r.Algorithm == counter.TokenBucket {
		r.Burst = counter.MaxUnits
	} else {
		r.Units = counter.MaxUnits
	}
	return counter.MaxUnits - state.AvailableOf(r, now)
}

func (w *simWorld) auditSliding(b *simBook, r counter.Rate, charged []simAdmission, state counter.Counter, now counter.Instant) {
	var least, most int64
	for _, a := range charged {
		if now.Sub(a.from) < r.Period-2*w.sc.clockOff {
			least += a.cost
		}
		if now.Sub(a.to) <= r.Period+3*r.Slice()+w.dating(a) {
			most += a.cost
		}
	}
	w.balance(b, r, least, most, simUsed(r, state, now))
}

func (w *simWorld) auditFixed(b *simBook, r counter.Rate, charged []simAdmission, state counter.Counter, now counter.Instant) {
	opened := simWindow(state, r).Opened
	if opened == 0 || now >= opened.Add(r.Period) || b.late[opened] {
		return // a late one may overlap with the window that counted some of them
	}
	var least, most int64
	for _, a := range charged {
		if a.from >= opened.Add(2*w.sc.clockOff+w.dating(a)) {
			least += a.cost
		}
		if a.to >= opened.Add(-w.dating(a)) {
			most += a.cost
		}
	}
	if slices.ContainsFunc(charged, w.uncharged) {
		most = counter.MaxUnits // how much of it belongs to the window before cannot be told from here
	}
	w.balance(b, r, least, most, simUsed(r, state, now))
}

// balance compares what was admitted, at least and at most, with what the store
// counts.
func (w *simWorld) balance(b *simBook, r counter.Rate, least, most, used int64) {
	if used < least {
		w.fault("%s: %v: forgotten: %d admitted, the store knows of %d", b.key, r, least, used)
	}
	if !w.exact(b) {
		return
	}
	w.balanced.Add(1)
	if used > most {
		w.fault("%s: %v: kept: %d admitted, the store counts %d", b.key, r, most, used)
	}
}

// auditBucket compares levels. A lease is charged up to its life before it is
// spent, so the store's level may be lower by what drains meanwhile, and by a
// unit for the fraction that a whole number cannot show. What was spent without
// the store may have drained when it is posted.
func (w *simWorld) auditBucket(b *simBook, r counter.Rate, charged []simAdmission, state counter.Counter, now counter.Instant) {
	perNano := float64(r.Units) / float64(r.Period)
	var level float64
	var last counter.Instant
	for _, a := range charged {
		if a.degraded {
			continue
		}
		if last != 0 {
			level = max(0, level-perNano*float64(a.to.Sub(last)))
		}
		level += float64(a.cost)
		last = a.to
	}
	level -= perNano * float64(now.Sub(last))
	used := float64(simUsed(r, state, now))
	if used < level-perNano*float64(b.longest+2*w.sc.clockOff)-1 {
		w.fault("%s: %v: forgotten: the level is %.1f, the store says %.0f", b.key, r, level, used)
	}
}
