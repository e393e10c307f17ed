package counter

import (
	"testing"
	"time"
)

// t0 begins a day, and so a slice of every period that stories use.
const t0 = Instant(20_000 * 24 * time.Hour)

const (
	ms    = time.Millisecond
	now   = time.Duration(-1) // in a story's next: at once
	never = time.Duration(-2) // in a story's next: no instant will do
)

// deed is what one step of a story does to the counter at an instant.
type deed func(s *story, at Instant)

// step is one line of a story: when (after t0), what is done, and then how many
// units are left and when (after t0) the asked number is to be had.
type step struct {
	at   time.Duration
	do   deed
	left int64
	ask  int64
	next time.Duration
}

type story struct {
	rates []Rate
	c     Counter
}

func look(*story, Instant) {}

func spend(n int64) deed {
	return func(s *story, at Instant) { s.c.Charge(s.rates, n, at, at) }
}

// lease charges n units that may be spent until an instant after t0.
func lease(n int64, until time.Duration) deed {
	return func(s *story, at Instant) { s.c.Charge(s.rates, n, at, t0.Add(until)) }
}

// giveBack returns n units of a lease that ended at an instant after t0.
func giveBack(n int64, until time.Duration) deed {
	return func(s *story, at Instant) { s.c.Refund(s.rates, n, t0.Add(until), at) }
}

// post reports n units admitted at an instant after t0.
func post(n int64, admitted time.Duration) deed {
	return func(s *story, at Instant) { s.c.Post(s.rates, n, t0.Add(admitted), at) }
}

func grant(n int64) deed {
	return func(s *story, at Instant) { s.c.Credit(s.rates, n, at) }
}

// edit puts other limits in force.
func edit(text string) deed {
	return func(s *story, _ Instant) { s.rates = mustRates(text) }
}

func reset(s *story, _ Instant) { s.c.Reset() }

func mustRates(text string) []Rate {
	rates, err := ParseRates(text)
	if err != nil {
		panic(err)
	}
	return rates
}

// tell runs the steps and checks each against the table.
func tell(t *testing.T, rates string, steps []step) *story {
	t.Helper()
	s := &story{rates: mustRates(rates)}
	for i, st := range steps {
		at := t0.Add(st.at)
		st.do(s, at)
		if err := s.c.Validate(); err != nil {
			t.Fatalf("step %d at %s: %v", i, st.at, err)
		}
		if left := s.c.Available(s.rates, at); left != st.left {
			t.Errorf("step %d at %s: left %d, want %d", i, st.at, left, st.left)
		}
		if st.ask > 0 {
			checkNext(t, s, i, st)
		}
	}
	return s
}

func checkNext(t *testing.T, s *story, i int, st step) {
	t.Helper()
	at := t0.Add(st.at)
	next, ok := s.c.NextAt(s.rates, at, st.ask)
	switch {
	case !ok:
		if st.next != never {
			t.Errorf("step %d at %s: %d units never, want at %s", i, st.at, st.ask, st.next)
		}
	case st.next == now:
		if next != max(at, s.c.Seen) {
			t.Errorf("step %d at %s: %d units at %s, want now", i, st.at, st.ask, next.Sub(t0))
		}
	case next != t0.Add(st.next):
		t.Errorf("step %d at %s: %d units at %s, want %s", i, st.at, st.ask, next.Sub(t0), st.next)
	}
}

func TestSlidingStories(t *testing.T) {
	t.Run("a unit comes back one period after the end of its slice", func(t *testing.T) {
		// 3 per 60 s: slices of one second.
		tell(t, "3-M", []step{
			{0, look, 3, 3, now},
			{300 * ms, spend(1), 2, 3, 61 * time.Second},
			{time.Second, spend(2), 0, 1, 61 * time.Second},
			{time.Second, look, 0, 2, 62 * time.Second},
			{time.Second, look, 0, 4, never},
			{61*time.Second - 1, look, 0, 1, 61 * time.Second},
			{61 * time.Second, look, 1, 1, now},
			{62 * time.Second, look, 3, 3, now},
		})
	})
	t.Run("a lease counts where it ends", func(t *testing.T) {
		tell(t, "10-M", []step{
			{900 * ms, lease(10, 1400*ms), 0, 1, 62 * time.Second},
			{61 * time.Second, look, 0, 1, 62 * time.Second},
			{62 * time.Second, look, 10, 10, now},
		})
	})
	t.Run("what a lease did not spend comes back, as long as it counts", func(t *testing.T) {
		tell(t, "10-M", []step{
			{900 * ms, lease(6, 1400*ms), 4, 0, 0},
			{950 * ms, lease(2, 1900*ms), 2, 0, 0},
			{1500 * ms, giveBack(5, 1400*ms), 7, 0, 0},
			{1500 * ms, giveBack(9, 1400*ms), 10, 0, 0}, // more than was charged
			{2 * time.Second, giveBack(1, 1400*ms), 10, 0, 0},
			{3 * time.Second, lease(10, 3500*ms), 0, 0, 0},
			{64 * time.Second, giveBack(10, 3500*ms), 10, 10, now}, // gone by itself
		})
	})
	t.Run("an instant before the newest change counts as that", func(t *testing.T) {
		tell(t, "5-M", []step{
			{10 * time.Second, spend(5), 0, 1, 71 * time.Second},
			{-time.Hour, look, 0, 1, 71 * time.Second},
			{-time.Hour, giveBack(2, 10*time.Second), 2, 2, now},
			{-time.Hour, spend(2), 0, 1, 71 * time.Second},
			{71 * time.Second, look, 5, 5, now},
		})
	})
}

func TestSlidingRareDeeds(t *testing.T) {
	t.Run("an admission is posted where it happened, or nowhere", func(t *testing.T) {
		tell(t, "5-M", []step{
			{65 * time.Second, post(2, 3*time.Second), 5, 5, now}, // over
			{65 * time.Second, post(2, 5*time.Second), 3, 5, 66 * time.Second},
			{65 * time.Second, post(7, 64*time.Second), 0, 1, 125 * time.Second},
			{65 * time.Second, post(1, 99*time.Second), 0, 1, 125 * time.Second}, // a slice ahead at most
			{126 * time.Second, look, 4, 5, 127 * time.Second},
			{127 * time.Second, look, 5, 5, now},
		})
	})
	t.Run("extra units leave with the slice they were granted in", func(t *testing.T) {
		tell(t, "5-M", []step{
			{0, spend(5), 0, 1, 61 * time.Second},
			{2 * time.Second, grant(3), 3, 3, now},
			{3 * time.Second, spend(3), 0, 1, 61 * time.Second},
			// 5 spent at 0 leave at 61 s; at 63 s the grant does, and takes 3 along.
			{61 * time.Second, look, 5, 5, now},
			{62 * time.Second, look, 5, 5, now},
			{63 * time.Second, look, 2, 5, 64 * time.Second},
			{64 * time.Second, look, 5, 5, now},
		})
	})
	t.Run("zero units deny all, for ever, whatever is granted", func(t *testing.T) {
		tell(t, "0-M", []step{
			{0, look, 0, 1, never},
			{0, grant(3), 0, 1, never},
		})
	})
}

func TestFixedStories(t *testing.T) {
	t.Run("a window opens at its first charge and closes one period later", func(t *testing.T) {
		tell(t, "3-M fixed", []step{
			{7 * time.Second, spend(1), 2, 3, 67 * time.Second},
			{66 * time.Second, spend(2), 0, 1, 67 * time.Second},
			{66 * time.Second, look, 0, 4, never},
			{67*time.Second - 1, look, 0, 1, 67 * time.Second},
			{67 * time.Second, look, 3, 3, now},
			{70 * time.Second, spend(3), 0, 1, 130 * time.Second},
		})
	})
	t.Run("a lease is charged where it was taken and closes with what it gave back", func(t *testing.T) {
		s := tell(t, "3-M fixed", []step{
			{0, lease(3, 100*ms), 0, 1, time.Minute},
			{200 * ms, giveBack(2, 100*ms), 2, 3, time.Minute},
			{300 * ms, giveBack(2, 100*ms), 3, 3, now},
		})
		if !s.c.Empty() {
			t.Errorf("a window with nothing in it is still there: %+v", s.c)
		}
	})
	t.Run("nothing of an old window is taken from the new one", func(t *testing.T) {
		tell(t, "3-M fixed", []step{
			{0, lease(3, 100*ms), 0, 0, 0},
			{time.Minute, spend(2), 1, 0, 0},
			{time.Minute, giveBack(3, 100*ms), 1, 0, 0},
			{time.Minute, giveBack(3, 2*time.Minute), 1, 0, 0}, // its close is not in it
			{time.Minute, giveBack(1, 2*time.Minute-1), 2, 0, 0},
		})
	})
	// Case 19: the store was away for 15 s; the window after it starts from its
	// own admissions.
	t.Run("nothing of an old window is charged to the new one", func(t *testing.T) {
		tell(t, "5/10s fixed", []step{
			{0, spend(5), 0, 1, 10 * time.Second},
			{16 * time.Second, post(3, 9*time.Second), 5, 5, now}, // into the old window
			{16 * time.Second, post(2, 11*time.Second), 3, 5, 21 * time.Second},
			{16 * time.Second, post(1, 12*time.Second), 2, 5, 21 * time.Second},
			{16 * time.Second, post(4, 10*time.Second), 0, 5, 21 * time.Second}, // after the old one closed
			{40 * time.Second, post(2, 22*time.Second), 5, 5, now},              // opened and over
		})
	})
	t.Run("extra units hold until the window closes", func(t *testing.T) {
		tell(t, "5-M fixed", []step{
			{0, grant(2), 7, 7, now},
			{time.Second, spend(7), 0, 1, time.Minute}, // the grant opened the window
			{2 * time.Second, grant(2), 2, 3, time.Minute},
			{time.Minute, look, 5, 6, never},
		})
	})
}

func TestTokenBucketStories(t *testing.T) {
	t.Run("the burst at once, then the rate, to the nanosecond", func(t *testing.T) {
		// 3 per second: a unit each 333,333,333 and a third ns.
		tell(t, "3-S token-bucket burst=5", []step{
			{0, spend(5), 0, 1, 333_333_334},
			{333_333_333, look, 0, 1, 333_333_334},
			{333_333_334, spend(1), 0, 1, 666_666_667},
			{666_666_667, spend(1), 0, 1, time.Second}, // nothing was rounded away
			{time.Second, look, 1, 5, 2_333_333_334},
			{time.Second, look, 1, 6, never},
			{time.Hour, look, 5, 5, now},
		})
	})
	t.Run("what drained since is not given back or posted again", func(t *testing.T) {
		tell(t, "10-S token-bucket", []step{
			{0, lease(10, 100*ms), 0, 1, 100 * ms},
			{100 * ms, giveBack(4, 100*ms), 5, 10, 600 * ms},
			{400 * ms, giveBack(4, 100*ms), 10, 10, now}, // as if they had never been charged
			{400 * ms, giveBack(9, 400*ms), 10, 10, now},
			{time.Second, post(8, 100*ms), 10, 10, now},      // drained by now
			{time.Second, post(8, 500*ms), 3, 10, 1700 * ms}, // on top of the 4 that were left then
		})
	})
	t.Run("extra units never make more than a burst", func(t *testing.T) {
		tell(t, "10-S token-bucket burst=20", []step{
			{0, spend(15), 5, 0, 0},
			{0, grant(10), 15, 0, 0},
			{0, grant(10), 20, 21, never},
		})
	})
	t.Run("zero units deny all", func(t *testing.T) {
		tell(t, "0-S token-bucket burst=7", []step{{0, look, 0, 1, never}})
	})
}
