package kvstore

import (
	"slices"
)

// odd reports whether a clock with this offset is the odd one: most of its
// peers differ from it by more than may be followed. theirs is their median.
func odd(offset int64, peers []int64) (theirs int64, yes bool) {
	if len(peers) == 0 {
		return 0, false
	}
	p := slices.Clone(peers)
	slices.Sort(p)
	theirs = p[len(p)/2]
	return theirs, abs(theirs-offset) > int64(maxFollow)
}
