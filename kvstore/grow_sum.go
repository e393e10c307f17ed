package kvstore

import (
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// addRecords is the cluster's record with what was spent of the same counter
// elsewhere added.
func addRecords(old *record, there []byte) ([]byte, error) {
	if len(there) == 0 { // it expired meanwhile
		return old.encode()
	}
	r, err := decodeRecord(there)
	if err != nil {
		return nil, err
	}
	r.counter = sumCounters(r.counter, old.counter)
	return r.encode()
}

// sumCounters is a counter on which all was spent that was spent on a and on b.
// Where it cannot be exact it errs on the side of admitting less.
func sumCounters(a, b counter.Counter) counter.Counter {
	sum := a.Clone()
	sum.Seen = max(a.Seen, b.Seen)
	for _, w := range b.Clone().Windows {
		found := false
		for i := range sum.Windows {
			v := &sum.Windows[i]
			if v.Period == w.Period && v.Algorithm == w.Algorithm {
				*v, found = sumWindows(*v, w), true
				break
			}
		}
		if !found {
			sum.Windows = append(sum.Windows, w)
		}
	}
	return sum
}

func sumWindows(a, b counter.Window) counter.Window {
	sum := counter.Window{
		Period: a.Period, Algorithm: a.Algorithm,
		Opened: max(a.Opened, b.Opened),
		Owed:   a.Owed + b.Owed,
		Part:   a.Part + b.Part,
	}
	switch {
	case a.Algorithm == counter.Fixed:
		sum.Part = max(a.Part, b.Part)
	case sum.Part >= int64(sum.Period):
		sum.Part -= int64(sum.Period)
		sum.Owed++
	}
	sum.Owed = min(sum.Owed, counter.MaxUnits)
	i, j := 0, 0
	for i < len(a.Slots) || j < len(b.Slots) {
		switch {
		case j == len(b.Slots) || (i < len(a.Slots) && a.Slots[i].Slice < b.Slots[j].Slice):
			sum.Slots = append(sum.Slots, a.Slots[i])
			i++
		case i == len(a.Slots) || b.Slots[j].Slice < a.Slots[i].Slice:
			sum.Slots = append(sum.Slots, b.Slots[j])
			j++
		default:
			sum.Slots = append(sum.Slots, counter.Slot{
				Slice: a.Slots[i].Slice,
				Units: min(a.Slots[i].Units+b.Slots[j].Units, counter.MaxUnits),
			})
			i, j = i+1, j+1
		}
	}
	return sum
}
