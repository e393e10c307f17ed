package counter

import (
	"math"
	"time"
)

// dawn is the first instant that a counter knows: zero stands for "never".
const dawn = Instant(1)

// Available is how many units all the rates together admit at now: the least
// that any of them admits, never below 0. Without rates nothing limits and it is
// the largest int64. An instant before Seen counts as Seen.
func (c Counter) Available(rates []Rate, now Instant) int64 {
	least := int64(math.MaxInt64)
	for _, r := range rates {
		least = min(least, c.AvailableOf(r, now))
	}
	return least
}

// AvailableOf is how many units one rate admits at now, never below 0. It is
// above the rate's capacity only after [Counter.Credit].
func (c Counter) AvailableOf(rate Rate, now Instant) int64 {
	return c.window(rate).available(rate, c.notBefore(now))
}

// NextAt is the first instant at which all rates admit n units if nobody else
// spends or returns any: exact, one nanosecond earlier is still denied. When
// they do now, it is now, or Seen if that is later. It reports false when there
// is no such instant: n is above a rate's capacity, or a rate denies all.
func (c Counter) NextAt(rates []Rate, now Instant, n int64) (Instant, bool) {
	_, next, ok := c.Limiting(rates, now, n)
	return next, ok
}

// Limiting is [Counter.NextAt] together with the index of the rate that denies
// n units longest, the first of those that deny for ever. The index is -1 when
// all rates admit n now.
func (c Counter) Limiting(rates []Rate, now Instant, n int64) (index int, next Instant, ok bool) {
	now = c.notBefore(now)
	index = -1
	if n <= 0 {
		return index, now, true
	}
	// One round is enough unless there was a credit: when that leaves its window
	// less is available than before, and a rate that admitted may deny. Each
	// further round ends at a later slot's end, so there are no more of them
	// than slots.
	for {
		i, at, ok := c.longest(rates, now, n)
		switch {
		case !ok:
			return i, 0, false
		case at == now:
			return index, now, true
		}
		index, now = i, at
	}
}

// longest is the rate that denies n units longest, counting from now, and the
// first instant at which that rate alone admits them.
func (c Counter) longest(rates []Rate, now Instant, n int64) (index int, next Instant, ok bool) {
	index, next = -1, now
	for i, r := range rates {
		at, ok := c.window(r).next(r, now, n)
		switch {
		case !ok:
			return i, 0, false
		case at > next:
			index, next = i, at
		}
	}
	return index, next, true
}

// FullAt is the first instant at which the rate's whole capacity is available
// if nobody spends meanwhile. It is now, or Seen if that is later, when the
// capacity is available, and for a rate that denies all.
func (c Counter) FullAt(rate Rate, now Instant) Instant {
	now = c.notBefore(now)
	if at, ok := c.window(rate).next(rate, now, rate.Capacity()); ok {
		return at
	}
	return now
}

// Expires is the last instant at which anything the counter holds still
// matters, also in windows of rates that are not among the given ones; 0 when
// nothing does, and the counter may be forgotten.
func (c Counter) Expires(rates []Rate, now Instant) Instant {
	now = c.notBefore(now)
	var last Instant
	for _, w := range c.Windows {
		if gone := w.gone(w.drain(rates)); gone > now {
			last = max(last, gone-1)
		}
	}
	return last
}

// LeaseEnd is the last instant at which units charged at now may be spent, if
// the lease may live for life: cut to the shortest slice of the sliding rates,
// and to the last nanosecond of each fixed window as it would be after the
// charge. A life of 0 or less is that of exact mode: to the end of the current
// slice of every sliding rate and of every fixed window; now, when there are
// token buckets only.
func (c Counter) LeaseEnd(rates []Rate, now Instant, life time.Duration) Instant {
	now = c.notBefore(now)
	end := forever
	if life > 0 {
		if shortest := ShortestSlice(rates); shortest > 0 {
			life = min(life, shortest)
		}
		end = Instant(addSat(int64(now), int64(life)))
	}
	for _, r := range rates {
		switch {
		case !r.countable():
			end = now
		case r.Algorithm == Sliding && life <= 0:
			end = min(end, SliceEnd(r, now))
		case r.Algorithm == Fixed:
			end = min(end, c.window(r).openAt(now).closes()-1)
		}
	}
	if end == forever {
		return now
	}
	return end
}

// notBefore is now on the counter's own clock, which never moves back.
func (c Counter) notBefore(now Instant) Instant { return max(now, c.Seen, dawn) }

// window is a copy of the rate's window, or a new one that has spent nothing.
func (c Counter) window(r Rate) Window {
	if w := c.find(r); w != nil {
		return *w
	}
	return Window{Period: r.Period, Algorithm: r.Algorithm}
}

// find is the rate's window, nil if there is none. The pointer is good until the
// list of windows changes.
func (c Counter) find(r Rate) *Window {
	for i := range c.Windows {
		if w := &c.Windows[i]; w.Period == r.Period && w.Algorithm == r.Algorithm {
			return w
		}
	}
	return nil
}
