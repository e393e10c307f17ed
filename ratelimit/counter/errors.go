package counter

import (
	"errors"
	"fmt"
)

var (
	// ErrRate: a rate is out of bounds or cannot be read; the error is, or
	// joins, a [*RateError].
	ErrRate = errors.New("invalid rate")
	// ErrNoRate: a list of rates holds none.
	ErrNoRate = errors.New("no rate given")
	// ErrState: a counter is not one that this package could have made.
	ErrState = errors.New("invalid counter state")
)

// RateError is one fault of one rate. It wraps [ErrRate].
type RateError struct {
	Text   string // what was refused: a rate as it was written, or "field=value"
	Reason string // what is wrong with it, for people
}

// maxQuoted is how much of a refused text an error repeats, in bytes.
const maxQuoted = 64

func (e *RateError) Error() string {
	if len(e.Text) > maxQuoted {
		return fmt.Sprintf("rate %q...: %s", e.Text[:maxQuoted], e.Reason)
	}
	return fmt.Sprintf("rate %q: %s", e.Text, e.Reason)
}

// Unwrap makes errors.Is(err, ErrRate) true.
func (e *RateError) Unwrap() error { return ErrRate }
