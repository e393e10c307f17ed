package cluster

import (
	"testing"
	"time"
)

// admittedAt are admissions that began at the instants and took a tenth of a
// second.
func admittedAt(seconds ...float64) []Call {
	var calls []Call
	for _, s := range seconds {
		start := time.Duration(s * float64(time.Second))
		calls = append(calls, Call{Start: start, End: start + time.Second/10, Allowed: true})
	}
	return calls
}

func TestMostInSpan(t *testing.T) {
	t.Parallel()
	cases := []struct {
		why   string
		calls []Call
		want  int
	}{
		{"nothing", nil, 0},
		{"one", admittedAt(5), 1},
		{"all within a second", admittedAt(1, 1.1, 1.2, 1.9), 4},
		{"the last ends outside of every span with the first", admittedAt(1, 1.5, 1.95), 2},
		{"two clumps", admittedAt(1, 1.1, 3, 3.1, 3.2, 5), 3},
		{"order does not matter", admittedAt(3.2, 1, 3, 1.1, 3.1), 3},
	}
	for _, c := range cases {
		if got := MostInSpan(c.calls, time.Second); got != c.want {
			t.Errorf("%s: %d, want %d", c.why, got, c.want)
		}
	}
	denied := admittedAt(1, 1.1, 1.2)
	denied[1].Allowed = false
	if got := MostInSpan(denied, time.Second); got != 2 {
		t.Errorf("a denial counted: %d, want 2", got)
	}
}

func TestExactWindow(t *testing.T) {
	t.Parallel()
	calls := admittedAt(0, 0.25, 0.5, 0.75, 1, 1.125, 1.25, 1.5, 4)
	// 0, 0.25; then 1.125 (0 is out of the window, 1 second sharp is not), 1.5; 4.
	if got := ExactWindow(calls, 2, time.Second); got != 5 {
		t.Errorf("%d admitted, want 5", got)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	var calls []Call
	for i := range 100 {
		calls = append(calls, Call{End: time.Duration(100-i) * time.Millisecond})
	}
	if got := Percentile(calls, 0.99); got != 100*time.Millisecond {
		t.Errorf("p99 is %v, want 100ms", got)
	}
	if got := Percentile(calls, 0.5); got != 51*time.Millisecond {
		t.Errorf("p50 is %v, want 51ms", got)
	}
}

func TestLeaksFindsCallers(t *testing.T) {
	t.Parallel()
	log := "starting\nlimit of acct-ONE reached\nsubject subj-A|x.y said no\nacct-TWO is another's\n"
	got := leaks(log, []string{"acct-ONE", "subj-A|x.y"})
	if len(got) != 2 {
		t.Errorf("found %q, want the two lines that tell a caller", got)
	}
}

func TestUndisturbed(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	noise := []Call{
		{Start: 300 * ms, End: 301 * ms},
		{Start: 150 * ms, End: 190 * ms},
		{Start: 100 * ms, End: 102 * ms},
	}
	for _, c := range []struct {
		why         string
		start, took time.Duration
		want        time.Duration
	}{
		{"a slow call beside a quick one of noise is slow", 300 * ms, 50 * ms, 48 * ms},
		{"beside a slow one it is not", 160 * ms, 85 * ms, 5 * ms},
		{"nor while that lasts on", 189 * ms, 85 * ms, 5 * ms},
		{"nor soon after", 215 * ms, 85 * ms, 5 * ms},
		{"later it is", 221 * ms, 75 * ms, 75 * ms},
		{"the slow one began before the call was over", 100 * ms, 90 * ms, 10 * ms},
		{"no call is shorter than nothing", 170 * ms, 3 * ms, 0},
		{"nobody measured", 500 * ms, 20 * ms, 20 * ms},
	} {
		calls := []Call{{Start: c.start, End: c.start + c.took}}
		if got := Undisturbed(calls, noise, 2, 30*ms)[0].Took(); got != c.want {
			t.Errorf("%s: %v, want %v", c.why, got, c.want)
		}
		if calls[0].Took() != c.took {
			t.Errorf("%s: the call itself was changed", c.why)
		}
	}
}
