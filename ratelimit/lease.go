package ratelimit

import (
	"sync/atomic"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// closed is what a lease holds once it has been retired: nobody takes from it
// or puts back into it any more, so what close returned is final.
const closed = int64(-1)

// lease is units that a node may admit on its own. Most are charged to the
// counter already; a node that decides locally (delayed, or with the store
// away) grants itself uncharged ones and posts what was taken.
type lease struct {
	until   counter.Instant // the last instant at which units may be taken
	charged counter.Instant // what the units are charged to; 0: they are not charged
	dated   counter.Instant // what units that were not charged are to be posted to
	granted int64
	low     int64 // at or below it, the cell asks for more
	rest    int64 // what was available beyond the lease when it was granted

	left     atomic.Int64
	asked    atomic.Bool
	degraded bool // granted by the node itself, with the store away
}

func newLease(units int64, until, charged counter.Instant) *lease {
	ls := &lease{until: until, charged: charged, granted: units}
	ls.left.Store(units)
	return ls
}

// latestAsk is the least part of a lease at which a cell asks for more.
const latestAsk = 1.0 / 8

// lowMark is how many of a lease's units are left when its cell asks for more:
// as many as last until the answer is here, if exchanges take as long as the
// last one did, and some to spare.
func lowMark(units int64, life, took time.Duration) int64 {
	part := slowFactor * took.Seconds() / life.Seconds()
	return int64(float64(units) * min(1.0/2, max(latestAsk, part)))
}

// take takes n units and returns what is left; it takes nothing when fewer
// than n are there.
func (ls *lease) take(n int64) (left int64, ok bool) {
	for {
		have := ls.left.Load()
		if have < n {
			return have, false
		}
		if ls.left.CompareAndSwap(have, have-n) {
			return have - n, true
		}
	}
}

// putBack undoes a take. It reports false when the lease was closed meanwhile.
func (ls *lease) putBack(n int64) bool {
	for {
		have := ls.left.Load()
		if have == closed {
			return false
		}
		if ls.left.CompareAndSwap(have, have+n) {
			return true
		}
	}
}

// close ends the lease and returns the units nobody took.
func (ls *lease) close() int64 { return max(0, ls.left.Swap(closed)) }

// units is what is left now, for those who only look.
func (ls *lease) units() int64 {
	if ls == nil {
		return 0
	}
	return max(0, ls.left.Load())
}

// spent is what was taken so far.
func (ls *lease) spent() int64 {
	if ls == nil {
		return 0
	}
	return ls.granted - ls.units()
}

// live reports whether units may still be taken at now.
func (ls *lease) live(now counter.Instant) bool { return ls != nil && now <= ls.until }
