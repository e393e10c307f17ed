package storetest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// slow is a store whose every exchange is delayed and conflicts, and none lost.
var slow = storetest.Plan{Slow: 1, Conflicted: 0.5, MaxDelay: 20 * time.Millisecond}

func TestMemory_conforms(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string][]storetest.Option{
		"faultless": nil,
		"slow":      {storetest.WithFaults(slow.Faults(1))},
	} {
		for _, c := range storetest.Cases() {
			t.Run(name+"/"+c.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { c.Run(t, memoryEnv(opts...)) })
			})
		}
	}
}

// The same in real time, as the stores over a network are run.
func TestMemory_conformsInRealTime(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Env { return memoryEnv() })
}

func memoryEnv(opts ...storetest.Option) storetest.Env {
	clock := storetest.NewClock()
	m := storetest.NewMemory(clock, opts...)
	return storetest.Env{Stores: []ratelimit.Store{m, m, m}, Clock: clock}
}

func TestMemory_away(t *testing.T) {
	for name, away := range map[string]storetest.Away{"refusing": storetest.Refusing, "silent": storetest.Silent} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := storetest.NewClock()
				m := storetest.NewMemory(clock)
				env := storetest.Env{Stores: []ratelimit.Store{m}, Clock: clock}
				storetest.RunAway(t, env, func(*testing.T) func() {
					m.SetAway(away)
					return func() { m.SetAway(storetest.Here) }
				})
			})
		})
	}
}

var rates = []counter.Rate{{Units: 10, Period: time.Hour}}

// TestMemory_losses is the story of one exchange of each kind: what the caller
// is told, and what is charged in the end.
func TestMemory_losses(t *testing.T) {
	cases := []struct {
		name    string
		fault   storetest.Fault
		want    error // nil: answered
		now     int64 // available when the caller was told
		settled int64 // available two seconds later
	}{
		{"nothing", storetest.Fault{}, nil, 7, 7},
		{"conflicts", storetest.Fault{Conflicts: 3}, nil, 7, 7},
		{"delays", storetest.Fault{Before: 20 * time.Millisecond, After: 30 * time.Millisecond}, nil, 7, 7},
		{"refused", storetest.Fault{Loss: storetest.RefusedRequest}, ratelimit.ErrUnavailable, 10, 10},
		{"request lost", storetest.Fault{Loss: storetest.LostRequest}, ratelimit.ErrUnknown, 10, 10},
		{"answer lost", storetest.Fault{Loss: storetest.LostAnswer}, ratelimit.ErrUnknown, 7, 7},
		{"late", storetest.Fault{Loss: storetest.LateRequest, Late: time.Second}, ratelimit.ErrUnknown, 10, 7},
		{"given up on the way", storetest.Fault{Before: 150 * time.Millisecond}, context.DeadlineExceeded, 10, 7},
		{"given up on the way back", storetest.Fault{After: 150 * time.Millisecond}, context.DeadlineExceeded, 7, 7},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := storetest.NewClock()
				m := storetest.NewMemory(clock, storetest.WithFaults(func(ratelimit.Exchange) storetest.Fault { return c.fault }))
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				g, err := m.Exchange(ctx, ratelimit.Exchange{Key: "k", Rates: rates, Needs: []ratelimit.Need{{Cost: 3, Count: 1}}})
				if !errors.Is(err, c.want) || (err == nil) != (g.Units == 3) {
					t.Fatalf("granted %d, %v; want %v", g.Units, err, c.want)
				}
				wantLeft(t, m, clock, c.now)
				time.Sleep(2 * time.Second)
				wantLeft(t, m, clock, c.settled)
			})
		})
	}
}

func wantLeft(t *testing.T, m *storetest.Memory, clock *storetest.Clock, want int64) {
	t.Helper()
	if got := m.State("k").Available(rates, clock.Now()); got != want {
		t.Fatalf("%d available, want %d", got, want)
	}
}

// What arrives late is settled at the instant at which it arrived, before all
// that came after it.
func TestMemory_lateOnesKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := storetest.NewClock()
		late := storetest.Fault{Loss: storetest.LateRequest}
		var order []int64
		m := storetest.NewMemory(clock,
			storetest.WithFaults(func(x ratelimit.Exchange) storetest.Fault {
				f := late
				f.Late = time.Duration(x.Serial) * time.Millisecond
				if x.Serial == 0 {
					f = storetest.Fault{}
				}
				return f
			}),
			storetest.WithObserver(func(a storetest.Applied) { order = append(order, int64(a.Exchange.Serial)) }))
		start := clock.Now()
		for _, serial := range []uint64{30, 10, 20} {
			_, err := m.Exchange(t.Context(), ratelimit.Exchange{Key: "k", Rates: rates, Needs: []ratelimit.Need{{Cost: 1, Count: 1}}, Node: "n", Serial: serial})
			if !errors.Is(err, ratelimit.ErrUnknown) {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		g, err := m.Exchange(t.Context(), ratelimit.Exchange{Key: "k", Rates: rates})
		if err != nil {
			t.Fatal(err)
		}
		if len(order) != 4 || order[0] != 10 || order[1] != 20 || order[2] != 30 || order[3] != 0 {
			t.Errorf("applied in the order %v", order)
		}
		if g.State.Seen != start.Add(30*time.Millisecond) {
			t.Errorf("last write at %v, want 30 ms after the start", g.State.Seen.Sub(start))
		}
		if s := m.Stats(); s.Exchanges != 4 || s.Writes != 3 || s.Reads != 1 || s.Losses != 3 {
			t.Errorf("counted %+v", s)
		}
	})
}

func TestPlan_sameSeedSameFaults(t *testing.T) {
	t.Parallel()
	plan := storetest.Plan{Refused: 0.1, Lost: 0.1, LateShare: 0.1, LostAnswers: 0.1, Slow: 0.5, Conflicted: 0.5, MaxDelay: time.Second, MaxLate: time.Minute}
	a, b := plan.Faults(7), plan.Faults(7)
	kinds := make(map[storetest.Loss]int)
	for range 2000 {
		x, y := a(ratelimit.Exchange{}), b(ratelimit.Exchange{})
		if x != y {
			t.Fatalf("%+v and %+v from one seed", x, y)
		}
		kinds[x.Loss]++
	}
	for loss := storetest.NoLoss; loss <= storetest.LostAnswer; loss++ {
		if kinds[loss] < 100 {
			t.Errorf("loss %d drawn %d times of 2000", loss, kinds[loss])
		}
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	c := storetest.NewManualClock(1000)
	c.Advance(5)
	if c.Now() != 1005 || c.Error() != 0 {
		t.Fatalf("%v ± %v, want 1005 ± 0", c.Now(), c.Error())
	}
	c.Set(-3, 4)
	if c.Now() != 1002 || c.Error() != 4 {
		t.Fatalf("%v ± %v, want 1002 ± 4", c.Now(), c.Error())
	}
}
