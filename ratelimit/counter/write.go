package counter

import "slices"

// MaxWindows is how many windows a counter keeps when its rates need fewer.
const MaxWindows = 16

// Charge counts n units that are spent between now and until, both included. A
// sliding rate counts them in the slice of until, a unit spent early is held a
// little too long rather than let go too soon; the others count them at now. An
// until before now counts as now. Charge does not ask whether n units are
// available: ask [Counter.Available] first. n <= 0 changes nothing.
func (c *Counter) Charge(rates []Rate, n int64, now, until Instant) {
	if n <= 0 {
		return
	}
	c.Seen = c.notBefore(now)
	until = max(until, c.Seen)
	for _, r := range rates {
		if r.countable() {
			c.ensure(r).charge(r, n, c.Seen, until)
		}
	}
	c.Prune(rates, c.Seen)
}

// Post counts n units that were admitted at `at` without a charge: in the
// window that `at` belongs to, and not at all where that is over. A token bucket
// has drained them since `at`, or since it was last changed if that is later.
// Several posts are made in the order of their instants; prune the counter after
// the last. An `at` after now counts as now, but for a sliding rate, which takes
// it up to a slice ahead, as it takes the end of a lease. Posts may exceed the
// rates. n <= 0 changes nothing.
func (c *Counter) Post(rates []Rate, n int64, at, now Instant) {
	if n <= 0 {
		return
	}
	c.Seen = c.notBefore(now)
	at = max(at, dawn)
	for _, r := range rates {
		if r.countable() {
			c.ensure(r).post(r, n, at, c.Seen)
		}
	}
	c.prune(rates, min(at, c.Seen))
}

// Refund takes back n units of a [Counter.Charge] with the same until (the
// instant it counted as, if it lay before the charge): where that is still
// counted, and never more than is counted there. Of a token bucket they are less
// what has drained since until. n <= 0 changes nothing.
func (c *Counter) Refund(rates []Rate, n int64, until, now Instant) {
	if n <= 0 {
		return
	}
	c.Seen = c.notBefore(now)
	until = max(until, dawn)
	for _, r := range rates {
		if w := c.find(r); w != nil && r.countable() {
			w.refund(r, n, until, c.Seen)
		}
	}
	c.Prune(rates, c.Seen)
}

// Credit gives n units on top of the rates, an operator's doing: in a sliding
// window for as long as the slice of now counts, in a fixed one until it closes
// (one is opened if need be). A token bucket gets back at most what it owes. A
// rate of 0 units still denies all. n <= 0 changes nothing.
func (c *Counter) Credit(rates []Rate, n int64, now Instant) {
	if n <= 0 {
		return
	}
	c.Seen = c.notBefore(now)
	for _, r := range rates {
		if r.countable() {
			c.ensure(r).credit(r, n, c.Seen)
		}
	}
	c.Prune(rates, c.Seen)
}

// Prune drops what no longer matters at now: slots that left their ring, windows
// that hold nothing, and, beyond [MaxWindows], the oldest windows that no rate
// needs. Every other method that changes a counter but [Counter.Post] does so by
// itself.
func (c *Counter) Prune(rates []Rate, now Instant) {
	c.Seen = c.notBefore(now)
	c.prune(rates, c.Seen)
}

// prune drops the windows that no longer matter at an instant, which is not
// after Seen.
func (c *Counter) prune(rates []Rate, at Instant) {
	for i := range c.Windows {
		if w := &c.Windows[i]; w.Algorithm == Sliding {
			w.trim(c.Seen)
		}
	}
	c.Windows = slices.DeleteFunc(c.Windows, func(w Window) bool {
		return w.forgettable(w.drain(rates)) <= at
	})
	excess := len(c.Windows) - MaxWindows
	if excess <= 0 {
		return
	}
	c.Windows = slices.DeleteFunc(c.Windows, func(w Window) bool {
		drop := excess > 0 && indexOf(rates, w.Period, w.Algorithm) < 0
		if drop {
			excess--
		}
		return drop
	})
}

// Reset forgets all that was spent. Seen stays: time does not move back.
func (c *Counter) Reset() { c.Windows = nil }

// ensure is the rate's window, added if there is none. The pointer is good until
// the list of windows changes.
func (c *Counter) ensure(r Rate) *Window {
	if w := c.find(r); w != nil {
		return w
	}
	c.Windows = append(c.Windows, Window{Period: r.Period, Algorithm: r.Algorithm})
	return &c.Windows[len(c.Windows)-1]
}
