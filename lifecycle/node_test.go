package lifecycle

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

var errAway = errors.New("store is away")

// condition is a check that a test turns off and on.
type condition struct{ bad atomic.Bool }

func (c *condition) probe(context.Context) error {
	if c.bad.Load() {
		return errAway
	}
	return nil
}

func failing() *condition {
	c := &condition{}
	c.bad.Store(true)
	return c
}

func startNode(t *testing.T, cfg Config, checks []Check, opts ...Option) *Node {
	t.Helper()
	n, err := New(cfg, checks, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

func stopNode(t *testing.T, n *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		t.Fatal(err)
	}
}

// A life from the first instant to the last, with what the others are told.
func TestNode_life(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, policies := failing(), failing()
		var seen []Phase
		n, err := New(DefaultConfig(), []Check{{"store", store.probe}, {"policies", policies.probe}},
			WithObserver(func(s State) {
				if len(seen) == 0 || seen[len(seen)-1] != s.Phase {
					seen = append(seen, s.Phase)
				}
			}))
		if err != nil {
			t.Fatal(err)
		}
		if s := n.State(); s.Phase != Starting || s.Ready {
			t.Fatalf("before Start: %+v", s)
		}
		if err := n.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		want := []Fault{{"store", errAway.Error()}, {"policies", errAway.Error()}}
		if s := n.State(); s.Phase != Joining || s.Ready || !slices.Equal(s.Failing, want) {
			t.Fatalf("an hour without a store: %+v, want joining for both", s)
		}

		store.bad.Store(false)
		time.Sleep(time.Second)
		if s := n.State(); s.Ready || !slices.Equal(s.Failing, want[1:]) {
			t.Fatalf("one check of two: %+v", s)
		}
		policies.bad.Store(false)
		time.Sleep(time.Second)
		if s := n.State(); s.Phase != Ready || !s.Ready || s.Degraded || s.Failing != nil {
			t.Fatalf("all checks hold: %+v", s)
		}

		n.Drain()
		if s := n.State(); s.Phase != Draining || s.Ready {
			t.Fatalf("after Drain: %+v", s)
		}
		time.Sleep(time.Second)
		if s := n.State(); s.Ready {
			t.Fatalf("a draining node came back: %+v", s)
		}
		stopNode(t, n)
		stopNode(t, n) // idempotent
		if want := []Phase{Joining, Ready, Draining, Stopped}; !slices.Equal(seen, want) {
			t.Errorf("phases %v, want %v", seen, want)
		}
	})
}

// Policies that can be served without the store keep a ready node in service.
func TestNode_staysReadyDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &condition{}
		n := startNode(t, DefaultConfig(), []Check{{"store", store.probe}})
		defer stopNode(t, n)
		time.Sleep(time.Second)

		store.bad.Store(true)
		time.Sleep(time.Second)
		s := n.State()
		if s.Phase != Ready || !s.Ready || !s.Degraded || len(s.Failing) != 1 {
			t.Fatalf("store away: %+v, want ready and degraded", s)
		}
		store.bad.Store(false)
		time.Sleep(time.Second)
		if s := n.State(); !s.Ready || s.Degraded {
			t.Fatalf("store back: %+v", s)
		}
	})
}

// Case 8: policies that deny without the store take the node out within 5 s and
// bring it back within 2 s, and the phase stays.
func TestNode_case8LeavesServiceWhenItWouldDeny(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &condition{}
		n := startNode(t, DefaultConfig(), []Check{{"store", store.probe}},
			WithSticky(func() bool { return false }))
		defer stopNode(t, n)
		time.Sleep(time.Second)

		store.bad.Store(true)
		time.Sleep(5 * time.Second)
		if s := n.State(); s.Phase != Ready || s.Ready || len(s.Failing) != 1 {
			t.Fatalf("5 s without a store: %+v, want not ready", s)
		}
		store.bad.Store(false)
		time.Sleep(2 * time.Second)
		if s := n.State(); !s.Ready {
			t.Fatalf("2 s after the store: %+v, want ready", s)
		}
	})
}

func TestNode_minReadyStartsOverWhenACheckFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := DefaultConfig()
		cfg.MinReady = 10 * time.Second
		store := &condition{}
		n := startNode(t, cfg, []Check{{"store", store.probe}})
		defer stopNode(t, n)

		time.Sleep(9 * time.Second)
		store.bad.Store(true)
		time.Sleep(time.Second)
		store.bad.Store(false)
		time.Sleep(9 * time.Second)
		if n.State().Ready {
			t.Fatal("ready before all checks held for 10 s in a row")
		}
		time.Sleep(2 * time.Second)
		if !n.State().Ready {
			t.Fatal("not ready although all checks held for 10 s")
		}
	})
}

// A check that hangs fails, is not asked again meanwhile, and does not keep the
// others from being asked.
func TestNode_hangingCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var asked atomic.Int32
		hang := func(context.Context) error { asked.Add(1); <-release; return nil }
		other := failing()
		n := startNode(t, DefaultConfig(), []Check{{"hangs", hang}, {"other", other.probe}})

		time.Sleep(time.Minute)
		want := []Fault{{"hangs", "no answer within 1s"}, {"other", errAway.Error()}}
		if s := n.State(); !slices.Equal(s.Failing, want) {
			t.Errorf("failing %+v, want %+v", s.Failing, want)
		}
		if asked.Load() != 1 {
			t.Errorf("asked %d times while it hung", asked.Load())
		}
		other.bad.Store(false)
		time.Sleep(time.Second)
		if s := n.State(); len(s.Failing) != 1 {
			t.Errorf("the other check was not asked: %+v", s.Failing)
		}

		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := n.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Stop = %v, want its deadline", err)
		}
		close(release)
		stopNode(t, n)
		if s := n.State(); s.Phase != Stopped {
			t.Errorf("phase %s after the check returned", s.Phase)
		}
	})
}

func TestNode_startsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := startNode(t, DefaultConfig(), nil)
		var move *MoveError
		if err := n.Start(t.Context()); !errors.As(err, &move) || move.To != Joining {
			t.Errorf("second Start = %v, want a MoveError", err)
		}
		stopNode(t, n)
		if err := n.Start(t.Context()); !errors.As(err, &move) || move.From != Stopped {
			t.Errorf("Start after Stop = %v, want a MoveError", err)
		}
	})
}

// What the limiter says about its own degradation shows, ready or not.
func TestNode_degradedIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Bool
		n := startNode(t, DefaultConfig(), nil, WithDegraded(open.Load))
		defer stopNode(t, n)
		time.Sleep(time.Second)
		if s := n.State(); !s.Ready || s.Degraded {
			t.Fatalf("%+v", s)
		}
		open.Store(true)
		time.Sleep(time.Second)
		if s := n.State(); !s.Ready || !s.Degraded {
			t.Fatalf("%+v, want ready and degraded", s)
		}
	})
}
