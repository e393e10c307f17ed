package cluster

import (
	"slices"
	"time"
)

// Admitted are the calls that were admitted.
func Admitted(calls []Call) []Call {
	return slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return c.Err != nil || !c.Allowed })
}

// Of are the calls of one caller.
func Of(calls []Call, k *Caller) []Call {
	return slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return c.Caller != k })
}

// MostInSpan is the most that was admitted in any span as long as the period.
// The instant of an admission is the store's, and lies somewhere between the
// call's start and its end; so an admission counts in a span only when all of
// it lies inside. Nobody who counts fewer can be blamed by this.
func MostInSpan(calls []Call, period time.Duration) int {
	var starts, ends []time.Duration
	for _, c := range Admitted(calls) {
		starts, ends = append(starts, c.Start), append(ends, c.End)
	}
	slices.Sort(starts)
	slices.Sort(ends)
	most, ended := 0, 0
	for i, from := range starts {
		// Those that started before from have ended before from+period, as no
		// call takes a period: they are i of those that have.
		for ended < len(ends) && ends[ended] <= from+period {
			ended++
		}
		most = max(most, ended-i)
	}
	return most
}

// ExactWindow is how many of the calls a window would have admitted that knows
// the instant of every admission.
func ExactWindow(calls []Call, limit int, period time.Duration) int {
	var starts []time.Duration
	for _, c := range calls {
		starts = append(starts, c.Start)
	}
	slices.Sort(starts)
	var admitted []time.Duration
	for _, t := range starts {
		if n := len(admitted); n < limit || t-admitted[n-limit] > period {
			admitted = append(admitted, t)
		}
	}
	return len(admitted)
}

// Slowest is the longest that any of the calls took, and the given share of
// them at most: Percentile(calls, 0.99) is their p99.
func Percentile(calls []Call, share float64) time.Duration {
	if len(calls) == 0 {
		return 0
	}
	took := make([]time.Duration, len(calls))
	for i, c := range calls {
		took[i] = c.Took()
	}
	slices.Sort(took)
	return took[min(len(took)-1, int(share*float64(len(took))))]
}

// Undisturbed are the calls as they would have been but for the machine, which is
// what calls of noise measured: each is shorter by so many times what the slowest
// of those took that was under way during the call, or in the given span before it.
func Undisturbed(calls, noise []Call, times int, span time.Duration) []Call {
	less := slices.Clone(calls)
	for i, c := range less {
		var slowest time.Duration
		for _, n := range noise {
			if n.Start <= c.End && n.End >= c.Start-span {
				slowest = max(slowest, n.Took())
			}
		}
		less[i].End = max(c.Start, c.End-time.Duration(times)*slowest)
	}
	return less
}
