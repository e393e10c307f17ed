package kvstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// server is a store's server with a wall clock of its own, seen from a node.
type clockServer struct {
	clock *storeClock
	wall  time.Duration // the server's wall clock minus the node's
}

// sample is a heartbeat that takes there and back again, stamped after there.
func (s clockServer) sample(there, back time.Duration) sample {
	x := sample{sent: s.clock.local()}
	time.Sleep(there)
	x.stamp = counter.InstantOf(time.Now().Add(s.wall))
	time.Sleep(back)
	x.heard = s.clock.local()
	return x
}

// ahead is how far the clock is ahead of the node's wall clock.
func ahead(c *storeClock) time.Duration { return c.Now().Sub(counter.InstantOf(time.Now())) }

// The clock is the server's within its own error, whatever the machine's wall
// clock says, and the error is half the round trip.
func TestClock_setByTheFirstStamp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStoreClock()
		if c.synced() || c.Error() != unsyncedError {
			t.Error("a new clock must not count as synced")
		}
		server := clockServer{clock: c, wall: time.Hour}
		if got := c.observe(server.sample(8*time.Millisecond, 2*time.Millisecond), nil); got != clockSet {
			t.Errorf("observation %d, want set", got)
		}
		off := ahead(c) - time.Hour
		if off < -c.Error() || off > c.Error() {
			t.Errorf("off by %v, which is beyond its error %v", off, c.Error())
		}
		if e := c.Error(); e < 5*time.Millisecond || e > 6*time.Millisecond {
			t.Errorf("error %v, want half of 10ms", e)
		}
	})
}

// A better sample is kept, a worse one is not, and the error grows with age.
func TestClock_keepsTheTighterSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStoreClock()
		server := clockServer{clock: c}
		c.observe(server.sample(50*time.Millisecond, 50*time.Millisecond), nil)
		c.observe(server.sample(time.Millisecond, time.Millisecond), nil)
		good := c.Error()
		if good > 2*time.Millisecond {
			t.Errorf("error %v after a good sample", good)
		}
		c.observe(server.sample(100*time.Millisecond, 0), nil)
		if c.Error() > 2*good {
			t.Errorf("error %v: a bad sample replaced a good one", c.Error())
		}
		time.Sleep(time.Minute)
		if e := c.Error(); e < 50*time.Millisecond {
			t.Errorf("error %v a minute later, want it to have grown by the drift", e)
		}
	})
}

// A server whose wall clock is off by a little is followed; one that is off by
// an hour, because leadership moved there or somebody set it, is not.
func TestClock_followsALittleHoldsAgainstAStep(t *testing.T) {
	for _, c := range []struct {
		name string
		step time.Duration
		want observation
		move time.Duration // of the clock
	}{
		{"no step", 0, clockKept, 0},
		{"a little forward", 100 * time.Millisecond, clockFollowed, 100 * time.Millisecond},
		{"a little back", -100 * time.Millisecond, clockFollowed, -100 * time.Millisecond},
		{"an hour forward", time.Hour, clockHeld, 0},
		{"an hour back", -time.Hour, clockHeld, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := newStoreClock()
				server := clockServer{clock: clock}
				clock.observe(server.sample(time.Millisecond, time.Millisecond), nil)
				server.wall = c.step
				for i := range 5 {
					got := clock.observe(server.sample(time.Millisecond, time.Millisecond), nil)
					if want := c.want; i == 0 && got != want || i > 0 && got != clockKept {
						t.Errorf("sample %d: observation %d", i, got)
					}
				}
				if off := ahead(clock) - c.move; off < -10*time.Millisecond || off > 10*time.Millisecond {
					t.Errorf("clock moved by %v, want %v", ahead(clock), c.move)
				}
				// Back on the first server: the clock stands once more.
				server.wall = 0
				clock.observe(server.sample(time.Millisecond, time.Millisecond), nil)
				if c.want == clockHeld && (ahead(clock) < -10*time.Millisecond || ahead(clock) > 10*time.Millisecond) {
					t.Errorf("clock is off by %v after the leader came back", ahead(clock))
				}
			})
		})
	}
}

// A node that joins while the running nodes go by another clock than the
// server's takes theirs; so does a node whose machine was suspended.
func TestClock_takesTheOthersClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old := newStoreClock()
		server := clockServer{clock: old}
		old.observe(server.sample(time.Millisecond, time.Millisecond), nil)

		fresh := newStoreClock()
		peers := []int64{int64(old.Now()) - int64(fresh.local())}
		stepped := clockServer{clock: fresh, wall: time.Hour}
		if got := fresh.observe(stepped.sample(time.Millisecond, time.Millisecond), peers); got != clockAdopted {
			t.Errorf("observation %d, want adopted", got)
		}
		if d := fresh.Now().Sub(old.Now()); d < -fresh.Error() || d > fresh.Error() {
			t.Errorf("the new node's clock is %v off the old one's, beyond %v", d, fresh.Error())
		}
		if got := fresh.observe(stepped.sample(time.Millisecond, time.Millisecond), peers); got != clockKept {
			t.Errorf("next observation %d, want kept", got)
		}
		if fresh.shifted() > -59*time.Minute {
			t.Errorf("shift %v, want about -1h", fresh.shifted())
		}
	})
}

// A node that just joined gives in to those that were there before it.
func TestClock_concedes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newStoreClock()
		server := clockServer{clock: c}
		c.observe(server.sample(time.Millisecond, time.Millisecond), nil)
		base := int64(c.Now()) - int64(c.local())
		if c.concede([]int64{base + int64(10*time.Millisecond)}) {
			t.Error("conceded to a clock that agrees")
		}
		if !c.concede([]int64{base + int64(time.Minute)}) {
			t.Error("did not concede a minute")
		}
		if off := ahead(c) - time.Minute; off < -20*time.Millisecond || off > 20*time.Millisecond {
			t.Errorf("off by %v after conceding", off)
		}
		if got := c.observe(server.sample(time.Millisecond, time.Millisecond), nil); got != clockKept {
			t.Errorf("next observation %d, want kept", got)
		}
	})
}

// A sample in the middle of which peers agree with this node is no reason to
// take their clock.
func TestClock_isNotOddWhenPeersAgree(t *testing.T) {
	for _, c := range []struct {
		peers []int64
		odd   bool
	}{
		{nil, false},
		{[]int64{0}, false},
		{[]int64{0, 0, int64(time.Hour)}, false},
		{[]int64{int64(time.Hour), int64(time.Hour), 0}, true},
		{[]int64{-int64(time.Hour)}, true},
	} {
		if _, got := odd(0, c.peers); got != c.odd {
			t.Errorf("odd(%v) = %v, want %v", c.peers, got, c.odd)
		}
	}
}

func TestClock_nowAllocatesNothing(t *testing.T) {
	c := newStoreClock()
	if n := testing.AllocsPerRun(100, func() { _ = c.Now() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkClockNow(b *testing.B) {
	c := newStoreClock()
	b.ReportAllocs()
	for b.Loop() {
		_ = c.Now()
	}
}
