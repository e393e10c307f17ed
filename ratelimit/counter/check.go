package counter

import (
	"fmt"
)

// Validate reports whether the counter is one that this package could have
// made; whoever reads counters from outside asks before using one. The error
// wraps [ErrState] and names the first fault.
func (c Counter) Validate() error {
	if c.Seen < 0 {
		return stateFault("seen is %d, before the epoch", c.Seen)
	}
	for i, w := range c.Windows {
		if w.Opened > c.Seen {
			return stateFault("window %d (%s, %s) opened at %d, seen is %d", i, w.Algorithm, w.Period, w.Opened, c.Seen)
		}
		if err := w.validate(); err != nil {
			return fmt.Errorf("window %d (%s, %s): %w", i, w.Algorithm, w.Period, err)
		}
		for _, o := range c.Windows[:i] {
			if o.Period == w.Period && o.Algorithm == w.Algorithm {
				return stateFault("window %d (%s, %s) is there twice", i, w.Algorithm, w.Period)
			}
		}
	}
	return nil
}

func (w Window) validate() error {
	if !(Rate{Period: w.Period, Algorithm: w.Algorithm}).countable() {
		return stateFault("period or algorithm is out of bounds")
	}
	most := int64(w.Period) - 1
	if w.Algorithm == Fixed {
		most = int64(w.Opened)
	}
	if w.Opened < 0 || w.Part < 0 || w.Part > most {
		return stateFault("opened %d or part %d is out of bounds", w.Opened, w.Part)
	}
	switch w.Algorithm {
	case Sliding:
		if w.Opened != 0 || w.Owed != 0 || w.Part != 0 {
			return stateFault("a sliding window holds slots only")
		}
		return w.validateSlots()
	case Fixed:
		if len(w.Slots) != 0 || (w.Opened == 0) != (w.Owed == 0) {
			return stateFault("a fixed window is closed exactly when it owes nothing, and has no slots")
		}
	case TokenBucket:
		if len(w.Slots) != 0 || w.Owed < 0 || (w.Opened == 0) != (w.Owed == 0 && w.Part == 0) {
			return stateFault("a token bucket has an instant exactly when it owes something, and has no slots")
		}
	}
	return nil
}

func (w Window) validateSlots() error {
	last := int64(-1)
	newest := sliceOf(forever, w.Period)
	for _, s := range w.Slots {
		if s.Slice <= last || s.Slice > newest || s.Units == 0 {
			return stateFault("slot %d after slot %d with %d units", s.Slice, last, s.Units)
		}
		last = s.Slice
	}
	return nil
}

func stateFault(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrState, fmt.Sprintf(format, args...))
}
