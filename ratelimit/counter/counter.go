package counter

import (
	"slices"
	"time"
)

// Counter is what one identity has consumed: the list of the states of all its
// rates. The zero Counter has spent nothing. A Counter is a value: the methods
// that change it have pointer receivers and never share memory with a Clone.
// It is not safe for concurrent use.
type Counter struct {
	// Seen is the newest instant the counter was changed at. Time never moves
	// back for a counter: an older instant counts as Seen.
	Seen Instant
	// Windows holds one state per (period, algorithm), in the order in which
	// they were first needed.
	Windows []Window
}

// Window is the state of one rate, identified by period and algorithm and not
// by its limit, so that an edited limit keeps what was spent.
type Window struct {
	Period    time.Duration
	Algorithm Algorithm

	// Slots are the counts of a sliding window, sparse, ascending by Slice,
	// none of them zero.
	Slots []Slot

	// Opened is when a fixed window opened (0: it is closed), or the instant
	// at which a token bucket's level was Owed and Part.
	Opened Instant
	// Owed is the units of a fixed window, or the whole units that a token
	// bucket has yet to drain.
	Owed int64
	// Part is the fraction of a unit that a token bucket owes beyond Owed, in
	// Period-ths (nanoseconds of Period): 0 <= Part < Period. Of a fixed window
	// it is the instant at which the one before it closed, 0 if that is not
	// known: what was admitted from there on belongs to this one, also when
	// another node's charge opened it.
	Part int64
}

// Slot is how many units were charged to one slice.
type Slot struct {
	Slice int64 // the slice's number: its start divided by its length
	Units int64
}

// Clone is a copy that shares no memory with c. It takes at most two
// allocations and leaves room for one more slot in each window, so that a charge
// after it needs none.
func (c Counter) Clone() Counter {
	if len(c.Windows) == 0 {
		return Counter{Seen: c.Seen}
	}
	room := 0
	for _, w := range c.Windows {
		if w.Algorithm == Sliding {
			room += len(w.Slots) + 1
		}
	}
	slots := make([]Slot, room)
	windows := slices.Clone(c.Windows)
	for i := range windows {
		w := &windows[i]
		if w.Algorithm != Sliding {
			continue
		}
		n := copy(slots, w.Slots)
		w.Slots, slots = slots[:n:n+1], slots[n+1:]
	}
	return Counter{Seen: c.Seen, Windows: windows}
}

// Equal reports whether two counters hold the same, in the same order.
func (c Counter) Equal(o Counter) bool {
	return c.Seen == o.Seen && slices.EqualFunc(c.Windows, o.Windows, func(a, b Window) bool {
		return a.Period == b.Period && a.Algorithm == b.Algorithm && slices.Equal(a.Slots, b.Slots) &&
			a.Opened == b.Opened && a.Owed == b.Owed && a.Part == b.Part
	})
}

// Empty reports whether the counter holds nothing, as after [Counter.Reset].
func (c Counter) Empty() bool {
	return !slices.ContainsFunc(c.Windows, func(w Window) bool { return !w.isEmpty() })
}
