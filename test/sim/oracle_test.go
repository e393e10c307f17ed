package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// grace is how long after a policy changed a limit of the one before may still
// be met: what was granted under it is spent or back by then.
const grace = 1500 * time.Millisecond

// entry is an admission under one rule.
type entry struct {
	admission
	rate counter.Rate
}

// rules sorts a counter's admissions by the rules that they were admitted under.
func (b *book) rules() map[rule][]entry {
	byRule := make(map[rule][]entry)
	for _, a := range b.admitted {
		for _, r := range ratesOf(a.policy, b.tier, b.account) {
			byRule[ruleOf(r)] = append(byRule[ruleOf(r)], entry{a, r})
		}
	}
	return byRule
}

// checkLedger holds every admission to the limits.
func (w *world) checkLedger() {
	for _, b := range w.ledger.pages() {
		for r, entries := range b.rules() {
			w.checkRule(b, r, entries)
		}
		w.checkRefreshed(b)
	}
}

func (w *world) checkRule(b *book, r rule, entries []entry) {
	for _, e := range entries {
		others := func(p *ratelimit.Policy) bool { return p.OnStoreFailure != ratelimit.FailDeny }
		if e.degraded && !others(e.policy) && !slices.ContainsFunc(w.inForce(b.function, e.from.Add(-w.longestWait()), e.to), others) {
			w.fault("%s: admitted at %v without the store under onStoreFailure deny", b.key, w.since(e.to))
		}
	}
	w.checkShare(b, r, entries)
	strict := withSeeing(entries)
	switch {
	case slices.ContainsFunc(entries, func(e entry) bool { return e.policy.Consistency == ratelimit.Delayed }):
		w.checkDelayed(b, r, entries)
	case r.algorithm == counter.Sliding:
		w.checkSliding(b, r, strict)
	case r.algorithm == counter.Fixed:
		w.checkFixed(b, r, strict)
	default:
		w.checkBucket(b, r, strict, nil)
	}
}

// inForce are the policies of a function that were in force at some time in a
// span, both ends included.
func (w *world) inForce(function int, from, to counter.Instant) []*ratelimit.Policy {
	list := w.ledger.changes[function]
	first := 0
	for first+1 < len(list) && list[first+1].at < from {
		first++
	}
	var policies []*ratelimit.Policy
	for _, c := range list[first:] {
		if c.at <= to {
			policies = append(policies, c.policy)
		}
	}
	return policies
}

// limits are the largest limit and the largest burst of a rule that an entry
// may have been admitted under.
func (w *world) limits(b *book, e entry, before time.Duration) (units, burst int64) {
	units, burst = e.rate.Units, e.rate.Capacity()
	for _, p := range w.inForce(b.function, e.from.Add(-before), e.to) {
		for _, r := range ratesOf(p, b.tier, b.account) {
			if ruleOf(r) == ruleOf(e.rate) {
				units, burst = max(units, r.Units), max(burst, r.Capacity())
			}
		}
	}
	return units, burst
}

// checkSliding: what was decided wholly inside a span of one period, both ends
// included, is no more than the limit. Each admission ends such a span.
func (w *world) checkSliding(b *book, r rule, entries []entry) {
	for i, last := range entries {
		var sum int64
		for j := i; j >= 0 && last.to.Sub(entries[j].to) <= r.period; j-- {
			if last.to.Sub(entries[j].from) <= r.period {
				sum += entries[j].cost
			}
		}
		if limit, _ := w.limits(b, last, grace); sum > limit {
			w.fault("%s: %d admitted in the %v before %v, the limit is %d", b.key, sum, r.period, w.since(last.to), limit)
			return
		}
	}
}

// checkFixed: what was decided wholly inside one of the store's windows is no
// more than the limit, and nothing was decided outside of all of them.
func (w *world) checkFixed(b *book, r rule, entries []entry) {
	windows := slices.Clone(b.windows[r])
	slices.Sort(windows)
	sums := make(map[counter.Instant]int64)
	for _, e := range entries {
		at, found := slices.BinarySearch(windows, e.to)
		if !found {
			at--
		}
		switch {
		case at < 0 || e.from >= windows[at].Add(r.period):
			w.fault("%s: admitted at %v outside of every window of %v", b.key, w.since(e.to), r.period)
			return
		case e.from < windows[at] || e.to >= windows[at].Add(r.period):
			continue // it may belong to the window before or after
		}
		sums[windows[at]] += e.cost
		if limit, _ := w.limits(b, e, grace); sums[windows[at]] > limit {
			w.fault("%s: %d admitted until %v in the window of %v from %v, the limit is %d",
				b.key, sums[windows[at]], w.since(e.to), r.period, w.since(windows[at]), limit)
			return
		}
	}
}

// checkBucket: the level of a bucket that drains at the rate and gets all that
// was admitted never rises above the burst, give or take what drains while a
// lease lives, and what extra says of the time since it was last empty.
func (w *world) checkBucket(b *book, r rule, entries []entry, extra func(e entry, busy counter.Instant) int64) {
	entries = slices.Clone(entries)
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(a.to, b.to) })
	var level float64
	var fastest int64
	var busy counter.Instant // when the level last rose from zero
	for i, e := range entries {
		var quiet time.Duration // without an admission, but not without a rate in force
		if i > 0 {
			quiet = max(0, e.from.Sub(entries[i-1].to))
		}
		units, _ := w.limits(b, e, quiet)
		fastest = max(fastest, units)
		perNano := float64(fastest) / float64(r.period)
		if i > 0 {
			level = max(0, level-perNano*float64(e.to.Sub(entries[i-1].to)))
		}
		if level == 0 {
			busy = e.to
		}
		level += float64(e.cost)
		_, burst := w.limits(b, e, grace)
		bound := float64(burst) + perNano*float64(2*b.longest+4*w.sc.clockOff) + 1e-6
		if extra != nil {
			bound += float64(extra(e, busy)) + perNano*float64(w.sc.config.LeaseLife)
		}
		if level > bound {
			w.fault("%s: %d per %v, burst %d: %.3f above empty at %v, the bound is %.3f",
				b.key, e.rate.Units, r.period, burst, level, w.since(e.to), bound)
			return
		}
		level = min(level, bound)
	}
}

// since is an instant as people read it here: after the scenario's beginning.
func (w *world) since(at counter.Instant) time.Duration {
	return at.Sub(w.ledger.begin)
}
