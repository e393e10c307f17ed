package counter

import (
	"math"
	"slices"
	"time"
)

// A sliding window's units live in slices of the epoch. The slice of an instant
// is counted in full as long as any instant within one period can reach into
// it: with the newest slice k, slices k-60 and later.

// sliceLen is a sixtieth of the period, rounded up: 60 slices cover a period.
func sliceLen(period time.Duration) int64 { return (int64(period) + Slices - 1) / Slices }

// sliceOf is the number of the slice that contains the instant.
func sliceOf(i Instant, period time.Duration) int64 { return int64(i) / sliceLen(period) }

// sliceGone is the first instant at which a slice no longer counts.
func sliceGone(slice int64, period time.Duration) Instant {
	return Instant(mulSat(addSat(slice, Slices+1), sliceLen(period)))
}

// used is what the ring holds at now. It is negative after a credit.
func (w Window) used(now Instant) int64 {
	oldest := sliceOf(now, w.Period) - Slices
	var sum int64
	for i := len(w.Slots) - 1; i >= 0 && w.Slots[i].Slice >= oldest; i-- {
		sum = addSat(sum, w.Slots[i].Units)
	}
	return sum
}

// nextSliding is the first instant from now on at which no more than room units
// are used. Units only leave at the end of a slot, so those are the candidates.
func (w Window) nextSliding(now Instant, room int64) (Instant, bool) {
	used := w.used(now)
	if used <= room {
		return now, true
	}
	oldest := sliceOf(now, w.Period) - Slices
	for _, s := range w.Slots {
		if s.Slice < oldest {
			continue
		}
		used = subSat(used, s.Units)
		if used <= room {
			return sliceGone(s.Slice, w.Period), true
		}
	}
	return 0, false
}

// addSlot adds n units, which may be negative, to a slice. A slot that comes to
// zero goes.
func (w *Window) addSlot(slice, n int64) {
	i, found := w.slot(slice)
	switch {
	case !found:
		w.Slots = slices.Insert(w.Slots, i, Slot{Slice: slice, Units: n})
	case w.Slots[i].Units == -n:
		w.Slots = slices.Delete(w.Slots, i, i+1)
	default:
		w.Slots[i].Units = addSat(w.Slots[i].Units, n)
	}
}

// takeSlot takes up to n units from a slice, and never below zero.
func (w *Window) takeSlot(slice, n int64) {
	if i, found := w.slot(slice); found && w.Slots[i].Units > 0 {
		w.addSlot(slice, -min(n, w.Slots[i].Units))
	}
}

// slot finds a slice, or where it belongs. It searches from the newest end,
// where nearly all charges go.
func (w Window) slot(slice int64) (index int, found bool) {
	i := len(w.Slots)
	for i > 0 && w.Slots[i-1].Slice >= slice {
		i--
	}
	return i, i < len(w.Slots) && w.Slots[i].Slice == slice
}

// postSliding counts n units admitted at `at`, unless that has left the ring.
func (w *Window) postSliding(n int64, at, now Instant) {
	slice := sliceOf(at, w.Period)
	if slice >= sliceOf(now, w.Period)-Slices {
		w.addSlot(slice, n)
	}
}

// trim drops the slots that no longer count.
func (w *Window) trim(now Instant) {
	oldest := sliceOf(now, w.Period) - Slices
	gone := 0
	for gone < len(w.Slots) && w.Slots[gone].Slice < oldest {
		gone++
	}
	w.Slots = slices.Delete(w.Slots, 0, gone)
}

// SliceEnd is the last nanosecond of the slice of the rate's period that
// contains now. For a rate that is not valid it is now.
func SliceEnd(rate Rate, now Instant) Instant {
	if !rate.countable() {
		return now
	}
	now = max(now, dawn)
	length := sliceLen(rate.Period)
	start := int64(now) / length * length
	if start > math.MaxInt64-length {
		return forever
	}
	return Instant(start + length - 1)
}

// Slice is how long one slice of the rate's period is: a sixtieth, rounded up
// to a nanosecond. Only a sliding rate counts by slices.
func (r Rate) Slice() time.Duration { return time.Duration(sliceLen(r.Period)) }

// ShortestSlice is the shortest slice among the sliding rates; 0 when none of
// the rates is sliding.
func ShortestSlice(rates []Rate) time.Duration {
	var shortest time.Duration
	for _, r := range rates {
		if r.countable() && r.Algorithm == Sliding && (shortest == 0 || r.Slice() < shortest) {
			shortest = r.Slice()
		}
	}
	return shortest
}
