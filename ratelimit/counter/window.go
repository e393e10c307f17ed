package counter

// Here the three algorithms meet: one switch for each question that can be
// asked of a window. Callers pass an instant that is never before Counter.Seen.

// available is how many units the rate admits at now.
func (w Window) available(r Rate, now Instant) int64 {
	if !r.countable() || r.Units == 0 {
		return 0
	}
	var used int64
	switch r.Algorithm {
	case Sliding:
		used = w.used(now)
	case Fixed:
		used = w.usedFixed(now)
	case TokenBucket:
		used = w.owedBucket(r, now)
	}
	return max(0, subSat(r.Capacity(), used))
}

// next is the first instant from now on at which the rate admits n units.
func (w Window) next(r Rate, now Instant, n int64) (Instant, bool) {
	if !r.countable() || r.Units == 0 {
		return 0, false
	}
	room := subSat(r.Capacity(), n)
	switch r.Algorithm {
	case Sliding:
		return w.nextSliding(now, room)
	case Fixed:
		return w.nextFixed(now, room)
	default:
		return w.nextBucket(r, now, room)
	}
}

// charge adds n units that will be spent no later than until.
func (w *Window) charge(r Rate, n int64, now, until Instant) {
	switch r.Algorithm {
	case Sliding:
		w.addSlot(sliceOf(until, w.Period), n)
	case Fixed:
		w.addFixed(n, now)
	case TokenBucket:
		w.addBucket(r, n, now)
	}
}

// post adds n units that were admitted no later than `at`.
func (w *Window) post(r Rate, n int64, at, now Instant) {
	switch r.Algorithm {
	case Sliding:
		w.postSliding(n, min(at, now.Add(r.Slice())), now)
	case Fixed:
		w.postFixed(n, min(at, now))
	case TokenBucket:
		// From there on it drains as any level does.
		w.addBucket(r, n, max(min(at, now), w.Opened))
	}
}

// refund takes back n units that were charged until an instant.
func (w *Window) refund(r Rate, n int64, until, now Instant) {
	switch r.Algorithm {
	case Sliding:
		if slice := sliceOf(until, w.Period); slice >= sliceOf(now, w.Period)-Slices {
			w.takeSlot(slice, n)
		}
	case Fixed:
		w.refundFixed(n, until)
	case TokenBucket:
		at := min(now, max(until, w.Opened))
		w.takeBucket(r, undrained(r, n, until, at), at)
	}
}

// credit gives n units extra in the current window.
func (w *Window) credit(r Rate, n int64, now Instant) {
	switch r.Algorithm {
	case Sliding:
		w.addSlot(sliceOf(now, w.Period), -n)
	case Fixed:
		w.addFixed(-n, now)
	case TokenBucket:
		w.takeBucket(r, n, now)
	}
}

// gone is the first instant at which nothing in the window matters any more,
// drain being the units that a token bucket drains per period. 0 stands for a
// window that holds nothing. A bucket whose rate is not known any more, or that
// never drains, is kept for one period.
func (w Window) gone(drain int64) Instant {
	switch {
	case w.isEmpty():
		return 0
	case w.Algorithm == Sliding:
		return sliceGone(w.Slots[len(w.Slots)-1].Slice, w.Period)
	case w.Algorithm == TokenBucket && drain > 0:
		empty, _ := w.nextBucket(Rate{Units: drain}, w.Opened, 0)
		return empty
	default:
		return w.closes()
	}
}

// forgettable is the first instant at which the window need not be kept. A fixed
// window and a bucket are kept for one more period when they are over: admissions
// that are posted late find the window they belong to, and open no other.
func (w Window) forgettable(drain int64) Instant {
	gone := w.gone(drain)
	switch {
	case gone == 0 || w.Algorithm == Sliding:
		return gone
	case w.Algorithm == Fixed:
		return Instant(addSat(int64(gone), int64(w.Period)))
	default:
		return max(gone, Instant(addSat(int64(w.Opened), int64(w.Period))))
	}
}

// isEmpty reports whether the window holds nothing.
func (w Window) isEmpty() bool {
	return len(w.Slots) == 0 && w.Opened == 0
}

// drain is the units per period that the window's rate drains, 0 if it is not
// among the rates.
func (w Window) drain(rates []Rate) int64 {
	if w.Algorithm != TokenBucket {
		return 0
	}
	if i := indexOf(rates, w.Period, w.Algorithm); i >= 0 {
		return rates[i].Units
	}
	return 0
}
