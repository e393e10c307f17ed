package counter

// A token bucket is kept as the level of a leaking one: what was spent and has
// not drained yet. The level is Owed + Part/Period units as of Opened and drains
// Units per Period, so after d nanoseconds it is lower by Units*d Period-ths.
// All of it is whole numbers of Period-ths, so nothing is ever rounded away.

// levelAt is the level at now, in Period-ths of a unit. Before Opened, where no
// valid counter is asked, nothing has drained.
func (w Window) levelAt(drain int64, now Instant) wide {
	level := product(w.Owed, int64(w.Period)).plus(w.Part)
	return level.minus(product(drain, int64(max(0, now-w.Opened))))
}

// setLevel makes level the level as of now. An empty bucket keeps no instant.
func (w *Window) setLevel(level wide, now Instant) {
	w.Opened = now
	w.Owed, w.Part = level.over(int64(w.Period))
	w.settleLevel()
}

func (w *Window) settleLevel() {
	if w.Owed == 0 && w.Part == 0 {
		w.Opened = 0
	}
}

// owedBucket is the level at now in whole units, rounded up: a unit that has
// drained in part is not available yet.
func (w Window) owedBucket(r Rate, now Instant) int64 {
	whole, part := w.levelAt(r.Units, now).over(int64(w.Period))
	if part > 0 {
		whole = addSat(whole, 1)
	}
	return whole
}

// nextBucket is the first instant from now on at which the level is at most
// room units. The rate's Units are above zero.
func (w Window) nextBucket(r Rate, now Instant, room int64) (Instant, bool) {
	if room < 0 {
		return 0, false
	}
	level := product(w.Owed, int64(w.Period)).plus(w.Part)
	excess := level.minus(product(room, int64(w.Period)))
	wait, rest := excess.over(r.Units)
	if rest > 0 {
		wait = addSat(wait, 1)
	}
	return max(now, Instant(addSat(int64(w.Opened), wait))), true
}

// addBucket adds n units at now.
func (w *Window) addBucket(r Rate, n int64, now Instant) {
	w.setLevel(w.levelAt(r.Units, now), now)
	w.Opened = now
	w.Owed = addSat(w.Owed, n)
}

// takeBucket takes n units at now, and never below an empty bucket.
func (w *Window) takeBucket(r Rate, n int64, now Instant) {
	w.setLevel(w.levelAt(r.Units, now).minus(product(n, int64(w.Period))), now)
}

// undrained is what is left at now of n units that began to drain at since:
// whole units, rounded up.
func undrained(r Rate, n int64, since, now Instant) int64 {
	if now <= since {
		return n
	}
	drained, _ := product(r.Units, int64(now-since)).over(int64(r.Period))
	return max(0, n-drained)
}
