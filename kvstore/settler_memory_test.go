package kvstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// TestRefreshSeesOthers: a node that only refreshes sees what another writes,
// and one that only denies does too.
func TestRefreshSeesOthers(t *testing.T) {
	b := newBed(t, 1)
	a, other := b.settler(t, "a"), b.settler(t, "b")
	key := ratelimit.Key("f.v.account.refresh")
	spend := func(s *settler, n int64) int64 {
		g, err := s.Exchange(t.Context(), needs(key, perDay(10), n))
		if err != nil {
			t.Fatal(err)
		}
		return g.Units
	}
	spend(a, 10)
	if got := spend(other, 1); got != 0 {
		t.Fatalf("granted %d of nothing", got)
	}
	x := ratelimit.Exchange{Key: key, Rates: perDay(10), Reset: true}
	if _, err := a.Exchange(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if !within(time.Second, func() bool { return spend(other, 1) == 1 }) {
		t.Error("goes on denying after another node handed back")
	}
	writes := testutil.ToFloat64(a.metrics.writes)
	if !within(time.Second, func() bool {
		g, err := a.Exchange(t.Context(), ratelimit.Exchange{Key: key, Rates: perDay(10)})
		return err == nil && g.State.Available(perDay(10), g.At) == 9
	}) {
		t.Error("a refresh does not see what another node took")
	}
	if got := testutil.ToFloat64(a.metrics.writes); got != writes {
		t.Errorf("refreshes made %v writes", got-writes)
	}
}

// TestRemembersWithinBounds: counters beyond the bound are read again.
func TestRemembersWithinBounds(t *testing.T) {
	b := newBed(t, 1)
	s := newSettler(b.jetStream(t, 0), b.stream, storetest.NewClock(), settlerConfig{Node: "a", Remember: 10}, newMetrics(nil))
	for round := range 2 {
		for i := range 50 {
			key := ratelimit.Key(fmt.Sprintf("f.v.account.%d", i))
			g, err := s.Exchange(t.Context(), needs(key, perDay(2), 1))
			if err != nil || g.Units != 1 {
				t.Fatalf("round %d: granted %d, %v", round, g.Units, err)
			}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), bedWait)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if n := s.memories.Len(); n != 10 || len(s.lines) != 0 {
		t.Errorf("%d counters remembered and %d lines, want 10 and 0", n, len(s.lines))
	}
}
