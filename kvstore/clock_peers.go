package kvstore

import (
	"slices"
	"time"
)

// mostLate is how late the word of a peer's clock may be: it comes with a
// heartbeat, and heartbeats wait while a node, a server or a link stands still.
const mostLate = 30 * time.Second

// odd reports whether a clock with this offset is the odd one: most of its
// peers differ from it by more than may be followed. theirs is their median.
//
// Word that comes late says an earlier time, never a later one. A peer counts as
// behind only by more than it can be late: a clock that went back to late word
// would count what it settles in the past, and free it too soon when it finds
// its way again.
func odd(offset int64, peers []int64) (theirs int64, yes bool) {
	if len(peers) == 0 {
		return 0, false
	}
	p := slices.Clone(peers)
	slices.Sort(p)
	theirs = p[len(p)/2]
	ahead := theirs - offset
	return theirs, ahead > int64(maxFollow) || ahead < -int64(maxFollow+mostLate)
}
