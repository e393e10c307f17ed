package counter

// A fixed window is open from Opened to just before Opened+Period. A window
// that owes nothing is closed, whichever way it came to that: its next charge
// opens it anew.

// closes is the first instant after the window.
func (w Window) closes() Instant { return Instant(addSat(int64(w.Opened), int64(w.Period))) }

// isOpen reports whether the window counts at an instant.
func (w Window) isOpen(at Instant) bool {
	return w.Opened != 0 && w.Opened <= at && at < w.closes()
}

// openAt is the window as a charge at now would find it.
func (w Window) openAt(now Instant) Window {
	if w.Opened == 0 || now >= w.closes() {
		w.Opened, w.Owed, w.Part = now, 0, w.before()
	}
	return w
}

// before is when the window closes, for the one that comes after it.
func (w Window) before() int64 {
	if w.Opened == 0 {
		return 0
	}
	return int64(w.closes())
}

// usedFixed is what is counted at now. It is negative after a credit.
func (w Window) usedFixed(now Instant) int64 {
	return w.openAt(now).Owed
}

// nextFixed is the first instant from now on at which no more than room units
// are used.
func (w Window) nextFixed(now Instant, room int64) (Instant, bool) {
	switch {
	case w.usedFixed(now) <= room:
		return now, true
	case room >= 0:
		return w.closes(), true
	default:
		return 0, false
	}
}

// addFixed adds n units, which may be negative, to the window open at now, and
// opens one if none is.
func (w *Window) addFixed(n int64, now Instant) {
	*w = w.openAt(now)
	w.setFixed(addSat(w.Owed, n))
}

// refundFixed takes up to n units from the window that until falls into, and
// never below zero.
func (w *Window) refundFixed(n int64, until Instant) {
	if w.isOpen(until) && w.Owed > 0 {
		w.setFixed(w.Owed - min(n, w.Owed))
	}
}

// postFixed counts n units admitted at `at`. What belongs to a window that is
// over is charged to no other. The window that it opens may be over by now: it
// is kept all the same, so that a later post which fell into it opens none.
func (w *Window) postFixed(n int64, at Instant) {
	switch {
	case w.isOpen(at), w.Opened != 0 && at < w.Opened && w.reaches(at):
		w.setFixed(addSat(w.Owed, n))
	case w.Opened == 0 || at >= w.closes():
		w.Opened, w.Part = at, w.before()
		w.setFixed(n)
	}
}

// reaches reports whether an admission before the window was opened belongs to
// it: it was made after the window before had closed, and would have opened this
// one less than a period earlier.
func (w Window) reaches(at Instant) bool {
	return int64(at) >= w.Part && w.Opened < Instant(addSat(int64(at), int64(w.Period)))
}

func (w *Window) setFixed(owed int64) {
	w.Owed = owed
	if owed == 0 {
		w.Opened, w.Part = 0, 0
	}
}
