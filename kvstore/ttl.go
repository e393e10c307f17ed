package kvstore

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Spans of a record's time to live.
const (
	// ttlSlack is beyond the last instant at which the state matters: it covers
	// what the clocks of node and store differ by, and the journal.
	ttlSlack = 2 * time.Second
	// ttlJitter is at most added to a record whose state matters no more.
	ttlJitter = 2 * time.Second
	// jitterShare is the part of its longest period that a record may live
	// longer, so that counters which are born together do not die together:
	// 100,000 keys expiring at once hold up other writes for 100 ms.
	jitterShare = 8
)

// timeToLive is how long the store shall keep a counter that was settled at now
// for exchanges with these rates: whole seconds, past the last instant at which
// the state matters, and between the longest of its periods and twice that plus
// 5 s unless a burst takes longer to drain. It only collects garbage; no
// decision relies on it. A counter without a state lives for some seconds.
func timeToLive(c counter.Counter, rateSets [][]counter.Rate, now counter.Instant) time.Duration {
	var matters time.Duration
	for _, rates := range rateSets {
		matters = max(matters, c.Expires(rates, now).Sub(now))
	}
	var longest time.Duration
	if matters > 0 {
		for i := range c.Windows {
			longest = max(longest, c.Windows[i].Period)
		}
	}
	jitter := time.Duration(rand.Int64N(int64(min(longest/jitterShare, time.Hour) + ttlJitter)))
	return wholeSeconds(max(matters, longest) + ttlSlack + jitter)
}

// wholeSeconds rounds down, as the store would, but not below its least.
func wholeSeconds(d time.Duration) time.Duration {
	return max(time.Second, d.Truncate(time.Second))
}

// allowance is how much longer a record lives where the wall clocks of the servers
// are that far apart. The one that leads stamps a record, and each one lets it go
// by its own clock: one that is ahead of the one that stamped it lets it go too
// soon, and hands everybody a fresh budget when it comes to lead.
func allowance(apart time.Duration) time.Duration {
	if apart < time.Second {
		return 0 // ttlSlack covers it
	}
	return (apart + time.Second).Truncate(time.Second)
}

// addRates appends rates unless they are already among the sets: nearly always
// all exchanges of a batch carry the same ones.
func addRates(sets [][]counter.Rate, rates []counter.Rate) [][]counter.Rate {
	for _, have := range sets {
		if slices.Equal(have, rates) {
			return sets
		}
	}
	return append(sets, rates)
}
