package counter

import "time"

// Instant is a moment on the store's clock, in nanoseconds since the Unix
// epoch. The zero Instant is that epoch; no counter is ever used there, so zero
// also stands for "never".
type Instant int64

// InstantOf is t as an Instant.
func InstantOf(t time.Time) Instant { return Instant(t.UnixNano()) }

// Add returns i moved by d.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d) }

// Sub returns the span from u to i; negative when i is the earlier one.
func (i Instant) Sub(u Instant) time.Duration { return time.Duration(i - u) }

// Time returns i as a wall time in UTC.
func (i Instant) Time() time.Time { return time.Unix(0, int64(i)).UTC() }
