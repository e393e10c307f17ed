package kvstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

var perHour = []counter.Rate{{Units: 10, Period: time.Hour}}

const operatedKey = "f.v.account.a"

// newHolders are nodes without limiters over one server.
func newHolders(t *testing.T, n int) (nodes []operated, holders []*holder) {
	t.Helper()
	nodes = operate(t, externalStores(t, n), func(int) *holder {
		h := &holder{}
		holders = append(holders, h)
		return h
	})
	return nodes, holders
}

// left is what the store says can still be spent of the counter of 10 per hour.
func left(t *testing.T, s *Store) int64 {
	t.Helper()
	c, err := s.Counter(t.Context(), operatedKey)
	if err != nil && !errors.Is(err, ErrNoCounter) { // one that holds nothing soon expires
		t.Fatal(err)
	}
	return c.Counter.Available(perHour, s.Clock().Now())
}

// Any node may be asked; all are held when the counter is reset, and none is
// when that is done.
func TestOperator_resets(t *testing.T) {
	t.Parallel()
	nodes, holders := newHolders(t, 3)
	for i, n := range nodes {
		spend(t, n.store, operatedKey, uint64(i+1), 7)
		if err := n.Reset(t.Context(), operatedKey, perHour); err != nil {
			t.Fatal(err)
		}
		if got := left(t, n.store); got != 10 {
			t.Errorf("%d units after a reset, want 10", got)
		}
		for k, h := range holders {
			if n := h.holding.Load(); n != 0 {
				t.Errorf("node %d is still held (%d)", k, n)
			}
		}
	}
}

// A node that says that it cannot settle what it owes makes a reset fail, with
// nothing forgotten and nobody held.
func TestOperator_resetRefused(t *testing.T) {
	t.Parallel()
	nodes, holders := newHolders(t, 3)
	spend(t, nodes[0].store, operatedKey, 1, 7)
	why := errors.New("the store is away")
	holders[2].refuses.Store(&why)
	err := nodes[0].Reset(t.Context(), operatedKey, perHour)
	var refused *ResetError
	if !errors.As(err, &refused) || !slices.Equal(refused.Refused, []string{"node-2"}) ||
		!errors.Is(err, ratelimit.ErrUnavailable) || !strings.Contains(err.Error(), "node node-2: the store is away") {
		t.Errorf("error %v, want ErrUnavailable that names node-2", err)
	}
	if got := left(t, nodes[0].store); got != 3 {
		t.Errorf("%d units after a refused reset, want the 3 that were left", got)
	}
	for k, h := range holders {
		if n := h.holding.Load(); n != 0 {
			t.Errorf("node %d is still held (%d)", k, n)
		}
	}
}

// Of a node that does not answer the leases are waited out before the counter is
// reset; it is named where leases are asked for.
func TestOperator_resetsWithoutSilentNodes(t *testing.T) {
	t.Parallel()
	nodes, holders := newHolders(t, 3)
	spend(t, nodes[0].store, operatedKey, 1, 7)
	if err := nodes[1].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := nodes[0].Reset(t.Context(), operatedKey, perHour); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < ratelimit.MaxLease || took > 4*time.Second {
		t.Errorf("took %v, want a lease's life and little more", took)
	}
	if got := left(t, nodes[0].store); got != 10 {
		t.Errorf("%d units after a reset, want 10", got)
	}
	if held := time.Duration(holders[2].lasted.Load()); held == 0 || held >= ratelimit.MaxLease {
		t.Errorf("the others were held for %v, want no longer than a round", held)
	}
	_, silent, err := nodes[0].Leases(t.Context(), operatedKey)
	if err != nil || !slices.Equal(silent, []string{"node-1"}) {
		t.Errorf("silent %q, error %v, want node-1", silent, err)
	}
}

// An error tells how many nodes did not answer, and the context ends the waiting.
func TestOperator_errorCountsSilentNodes(t *testing.T) {
	t.Parallel()
	nodes, _ := newHolders(t, 3)
	if err := nodes[1].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), ratelimit.MaxLease/2)
	defer cancel()
	err := nodes[0].Reset(ctx, operatedKey, perHour)
	if !errors.Is(err, ratelimit.ErrUnavailable) || !strings.Contains(err.Error(), "(1 did not answer: node-1)") {
		t.Errorf("error %v, want ErrUnavailable that counts one silent node", err)
	}
}

func TestOperator_grants(t *testing.T) {
	t.Parallel()
	nodes, holders := newHolders(t, 2)
	spend(t, nodes[0].store, operatedKey, 1, 10)
	if err := nodes[1].Grant(t.Context(), operatedKey, perHour, 5); err != nil {
		t.Fatal(err)
	}
	if got := left(t, nodes[0].store); got != 5 {
		t.Errorf("%d units after a grant of 5, want 5", got)
	}
	for k, h := range holders {
		if n := h.holding.Load(); n != 0 {
			t.Errorf("node %d is still held (%d)", k, n)
		}
	}
}

func TestOperator_tellsLeases(t *testing.T) {
	t.Parallel()
	nodes, holders := newHolders(t, 3)
	ends := nodes[0].store.Clock().Now().Add(time.Hour)
	for i, units := range []int64{0, 20, 30} {
		holders[i].units.Store(units)
		holders[i].until.Store(int64(ends))
	}
	leases, silent, err := nodes[0].Leases(t.Context(), operatedKey)
	if err != nil || len(silent) > 0 {
		t.Fatalf("silent %q, error %v", silent, err)
	}
	if len(leases) != 2 || leases[0].Node != "node-1" || leases[0].Units != 20 || leases[1].Node != "node-2" || leases[1].Units != 30 {
		t.Fatalf("leases %+v, want 20 of node-1 and 30 of node-2", leases)
	}
	for _, l := range leases {
		if l.Until < 59*time.Minute || l.Until > 61*time.Minute { // clocks differ a little
			t.Errorf("%s until %v from now, want about an hour", l.Node, l.Until)
		}
	}
}

// Before the store is joined an operator says so at once.
func TestOperator_beforeJoining(t *testing.T) {
	t.Parallel()
	s, err := New(testConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	o := NewOperator(s, &holder{})
	for what, err := range map[string]error{
		"Start":  o.Start(t.Context()),
		"Reset":  o.Reset(t.Context(), operatedKey, perHour),
		"Leases": func() error { _, _, err := o.Leases(t.Context(), operatedKey); return err }(),
	} {
		if !errors.Is(err, ratelimit.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", what, err)
		}
	}
	if o.holder.(*holder).holding.Load() != 0 {
		t.Error("the node is still held")
	}
}
