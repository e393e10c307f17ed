package kvstore

import (
	"strings"
	"testing"
)

// TestSimulatedOwners_bite breaks the store in one way at a time. A simulation
// that stays silent checks nothing.
func TestSimulatedOwners_bite(t *testing.T) {
	for _, c := range []struct {
		name   string
		broken simTamper
		want   string // in what is reported
	}{
		{"writes are taken whatever sequence they expect", simTamper{anySequence: true}, "the limit is"},
		{"acknowledged writes get lost", simTamper{loseSeventh: true}, "forgotten"},
		{"nobody knows what others settled: spent twice", simTamper{noJournal: true}, "kept"},
		{"nobody knows what others settled: handed back twice", simTamper{noJournal: true}, "forgotten"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const tries = 300
			for seed := range uint64(tries) {
				if w := playSim(t, seed, c.broken); strings.Contains(strings.Join(w.faults, "\n"), c.want) {
					return
				}
			}
			t.Errorf("%d seeds and nobody said %q", tries, c.want)
		})
	}
}
