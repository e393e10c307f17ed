package load

import (
	"math/bits"
	"time"
)

// subBits is how finely a histogram tells durations apart: 1 part in 64.
const subBits = 6

// histogram counts durations in buckets whose width grows with them. The zero
// histogram is empty. It is not safe for concurrent use.
type histogram struct {
	counts [(64 - subBits) << subBits]int64
	total  int64
	max    time.Duration
}

// bucketOf is the bucket of a duration: the position of its highest bit and the
// bits behind it.
func bucketOf(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < 1<<subBits {
		return int(n)
	}
	shift := bits.Len64(n) - subBits - 1
	return (shift+1)<<subBits + int(n>>shift) - 1<<subBits
}

// upperOf is the longest duration of a bucket.
func upperOf(bucket int) time.Duration {
	if bucket < 1<<subBits {
		return time.Duration(bucket)
	}
	shift := bucket>>subBits - 1
	return time.Duration((uint64(bucket&(1<<subBits-1))+1<<subBits+1)<<shift - 1)
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.total++
	h.max = max(h.max, d)
}

func (h *histogram) merge(o *histogram) {
	for i, n := range o.counts {
		h.counts[i] += n
	}
	h.total += o.total
	h.max = max(h.max, o.max)
}

// quantile is a duration that the share q of all does not exceed, a little more
// than the true one at most; 0 when there are none.
func (h *histogram) quantile(q float64) time.Duration {
	if h.total == 0 {
		return 0
	}
	rank := int64(q * float64(h.total))
	var seen int64
	for i, n := range h.counts {
		if seen += n; seen > rank {
			return min(upperOf(i), h.max)
		}
	}
	return h.max
}
