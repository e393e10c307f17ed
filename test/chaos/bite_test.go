package chaos

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/headgate-io/headgate/test/cluster"
)

// at is a call that took a tenth of a second.
func at(seconds float64, allowed bool) cluster.Call {
	start := time.Duration(seconds * float64(time.Second))
	return cluster.Call{Start: start, End: start + time.Second/10, Allowed: allowed}
}

// The model refuses what no single counter could have done.
func TestOneCounterBites(t *testing.T) {
	t.Parallel()
	full := func() (calls []cluster.Call) {
		for i := range exactLimit {
			calls = append(calls, at(float64(i), true))
		}
		return calls
	}
	lost := at(3.5, false)
	lost.Degraded = true
	cases := []struct {
		why   string
		calls []cluster.Call
		want  porcupine.CheckResult
	}{
		{"all of the budget, then a denial", append(full(), at(10, false)), porcupine.Ok},
		{"one too many", append(full(), at(10, true)), porcupine.Illegal},
		{"a denial before the last unit was given", append(full(), at(8.5, false)), porcupine.Illegal},
		{"a denial that may have come after it", append(full(), at(9.05, false)), porcupine.Ok},
		{"a denial for a unit that may be lost", append(full()[:9], lost, at(9, false)), porcupine.Ok},
		{"a denial for two of which one may be lost", append(full()[:8], lost, at(9, false)), porcupine.Illegal},
	}
	for _, c := range cases {
		ops, _ := operations(c.calls)
		if got := porcupine.CheckOperationsTimeout(oneCounter, ops, checkBound); got != c.want {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
	}
}
