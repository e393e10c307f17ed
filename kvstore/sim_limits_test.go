package kvstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// checkLimits holds every admission that was not degraded to the limits of
// leased and exact.
func (w *simWorld) checkLimits() {
	if w.sc.policy.Consistency == ratelimit.Delayed {
		return
	}
	for _, b := range w.books {
		strict := slices.DeleteFunc(slices.Clone(b.admitted), func(a simAdmission) bool { return a.degraded })
		for _, r := range w.sc.rates(b.tier) {
			switch r.Algorithm {
			case counter.Sliding:
				w.checkSliding(b, r, strict)
			case counter.Fixed:
				w.checkFixed(b, r, strict)
			default:
				w.checkBucket(b, r, strict)
			}
		}
	}
}

// checkSliding: what was decided wholly inside a span of one period is no more
// than the limit. Each admission ends such a span. Clocks that differ by less
// than clockDoubt are not allowed for, and let go by as much too soon.
func (w *simWorld) checkSliding(b *simBook, r counter.Rate, list []simAdmission) {
	span := r.Period
	if doubt := 2 * w.sc.clockOff; doubt <= clockDoubt {
		span -= doubt
	}
	for i, last := range list {
		var sum int64
		for j := i; j >= 0 && last.to.Sub(list[j].to) <= span; j-- {
			if last.to.Sub(list[j].from) <= span {
				sum += list[j].cost
			}
		}
		if sum > r.Units {
			w.fault("%s: %d admitted in the %v before %v, the limit is %d", b.key, sum, span, w.since(last.to), r.Units)
			return
		}
	}
}

// checkFixed: what was decided wholly inside one of the store's windows is no
// more than the limit, and nothing was decided outside of all of them. By the
// clock of who settles, an instant may be up to two errors earlier.
func (w *simWorld) checkFixed(b *simBook, r counter.Rate, list []simAdmission) {
	windows := slices.Clone(b.windows[r])
	slices.Sort(windows)
	off := 2 * w.sc.clockOff
	sums := make(map[counter.Instant]int64)
	for _, a := range list {
		at, found := slices.BinarySearch(windows, a.to)
		if !found {
			at--
		}
		switch {
		case at < 0 || a.from >= windows[at].Add(r.Period+off):
			w.fault("%s: admitted at %v outside of every window of %v", b.key, w.since(a.to), r.Period)
			return
		case a.from < windows[at].Add(off) || a.to >= windows[at].Add(r.Period):
			continue // it may belong to the window before or after
		}
		sums[windows[at]] += a.cost
		if sums[windows[at]] > r.Units {
			w.fault("%s: %d admitted until %v in the window of %v from %v, the limit is %d",
				b.key, sums[windows[at]], w.since(a.to), r.Period, w.since(windows[at]), r.Units)
			return
		}
	}
}

// checkBucket: the level of a bucket that drains at the rate and gets all that
// was admitted never rises above the burst, give or take what drains while a
// lease lives and while clocks differ.
func (w *simWorld) checkBucket(b *simBook, r counter.Rate, list []simAdmission) {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b simAdmission) int { return cmp.Compare(a.to, b.to) })
	perNano := float64(r.Units) / float64(r.Period)
	bound := float64(r.Capacity()) + perNano*float64(2*b.longest+4*w.sc.clockOff) + 1e-6
	var level float64
	for i, a := range list {
		if i > 0 {
			level = max(0, level-perNano*float64(a.to.Sub(list[i-1].to)))
		}
		level += float64(a.cost)
		if level > bound {
			w.fault("%s: %v: %.3f above empty at %v, the bound is %.3f", b.key, r, level, w.since(a.to), bound)
			return
		}
	}
}

// fullBound is how long a counter may take to be full: its period and a slice or
// two, or until a bucket has drained what was ever put into it.
func (w *simWorld) fullBound(b *simBook, r counter.Rate) time.Duration {
	bound := r.Period + 3*r.Slice() + time.Second
	if r.Algorithm != counter.TokenBucket {
		return bound
	}
	var put int64
	for _, a := range b.admitted {
		put += a.cost
	}
	return bound + time.Duration(float64(r.Period)*float64(put+r.Capacity())/float64(r.Units))
}

// checkFull lets the time pass after which every counter shows its whole
// capacity again.
func (w *simWorld) checkFull() {
	var longest time.Duration
	for _, b := range w.books {
		for _, r := range w.sc.rates(b.tier) {
			longest = max(longest, w.fullBound(b, r))
		}
	}
	at := w.truth.Now().Add(longest)
	for _, b := range w.books {
		rec := w.store.record(simSubjects + string(b.key))
		for _, r := range w.sc.rates(b.tier) {
			if rec != nil && rec.counter.AvailableOf(r, at) != r.Capacity() {
				w.fault("%s: %v has %d available after it was left alone for %v", b.key, r, rec.counter.AvailableOf(r, at), longest)
			}
		}
	}
	time.Sleep(longest)
	for _, b := range w.books {
		rec := w.store.record(simSubjects + string(b.key))
		for _, r := range w.sc.rates(b.tier) {
			if rec != nil && rec.counter.AvailableOf(r, w.truth.Now()) != r.Capacity() {
				w.fault("%s: %v is not full", b.key, r)
			}
		}
	}
}
