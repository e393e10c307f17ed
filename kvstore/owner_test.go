package kvstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// roster is a list of live nodes that a test changes.
type roster struct{ names atomic.Pointer[[]string] }

func newRoster(names ...string) *roster {
	r := &roster{}
	r.set(names...)
	return r
}

func (r *roster) set(names ...string) {
	own := slices.Clone(names)
	r.names.Store(&own)
}

func (r *roster) Live() []string { return *r.names.Load() }

// patientOwners is for tests in which no owner is slow on purpose: on a loaded
// machine 40 ms pass without anybody's fault.
var patientOwners = ownerConfig{Answer: 5 * time.Second}

// member is a node of a bed: a settler with owners in front of it.
func (b *bed) member(tb testing.TB, node string, list liveNodes, cfg ownerConfig) *owners {
	tb.Helper()
	s := b.settler(tb, node)
	nc := s.bucket.js.Conn()
	o := newOwners(nc, s, list, node, cfg, s.metrics)
	if err := o.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	if err := nc.Flush(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bedWait)
		defer cancel()
		if err := o.Stop(ctx); err != nil {
			tb.Errorf("stop owners: %v", err)
		}
	})
	return o
}

// members are nodes that know of one another.
func (b *bed) members(tb testing.TB, n int, cfg ownerConfig) []*owners {
	tb.Helper()
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("node-%d", i))
	}
	list := newRoster(names...)
	all := make([]*owners, 0, n)
	for _, name := range names {
		all = append(all, b.member(tb, name, list, cfg))
	}
	return all
}

// keyOwnedBy finds a counter whose owner a node is.
func keyOwnedBy(tb testing.TB, o *owners, owner string) ratelimit.Key {
	tb.Helper()
	for i := range 10_000 {
		key := ratelimit.Key(fmt.Sprintf("f.v.account.%d", i))
		if o.places.owner(key) == owner {
			return key
		}
	}
	tb.Fatalf("%s owns nothing", owner)
	return ""
}

// serials numbers the exchanges of all nodes of the tests.
var serials atomic.Uint64

// named gives an exchange a name.
func named(node string, x ratelimit.Exchange) ratelimit.Exchange {
	x.Node, x.Serial = node, serials.Add(1)
	return x
}

// spent is what was charged to a counter per day, as the bucket says.
func (b *bed) spent(tb testing.TB, o *owners, key ratelimit.Key) int64 {
	tb.Helper()
	_, rec := b.stored(tb, o.settler.bucket.js, key)
	if rec == nil {
		return 0
	}
	const plenty = counter.MaxUnits
	return plenty - rec.counter.Available(perDay(plenty), o.settler.clock.Now())
}

// TestConformanceOfOwners holds nodes that bring their exchanges to owners to
// the contract of a store.
func TestConformanceOfOwners(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Env {
		env := storetest.Env{Clock: storetest.NewClock(), Stale: freshness}
		for _, o := range newBed(t, 3).members(t, 3, patientOwners) {
			env.Stores = append(env.Stores, o)
		}
		return env
	})
}

// TestHotCounterHasOneWriter: many nodes on one counter do not collide.
func TestHotCounterHasOneWriter(t *testing.T) {
	b := newBed(t, 1)
	nodes := b.members(t, 9, patientOwners)
	const workers, each = 4, 25
	limit := int64(len(nodes) * workers * each / 2)
	var granted atomic.Int64
	var wg sync.WaitGroup
	for _, o := range nodes {
		for range workers {
			wg.Go(func() {
				for range each {
					g, err := o.Exchange(t.Context(), named(o.node, needs("f.v.account.hot", perDay(limit), 1)))
					if err != nil {
						t.Errorf("exchange: %v", err)
						return
					}
					granted.Add(g.Units)
				}
			})
		}
	}
	wg.Wait()
	if granted.Load() != limit {
		t.Errorf("granted %d, want %d", granted.Load(), limit)
	}
	for _, o := range nodes {
		if n := testutil.ToFloat64(o.metrics.conflicts); n != 0 {
			t.Errorf("%s had %v conflicts", o.node, n)
		}
	}
}

// TestTwoOwnersAtOnce: nodes that disagree about who owns a counter only
// collide, they do not err.
func TestTwoOwnersAtOnce(t *testing.T) {
	b := newBed(t, 3)
	first := b.member(t, "a", newRoster("a"), patientOwners)
	second := b.member(t, "b", newRoster("b"), patientOwners)
	const each, limit = 100, 150
	var granted atomic.Int64
	var wg sync.WaitGroup
	for _, o := range []*owners{first, second} {
		wg.Go(func() {
			for range each {
				g, err := o.Exchange(t.Context(), named(o.node, needs("f.v.account.two", perDay(limit), 1)))
				if err != nil {
					t.Errorf("exchange: %v", err)
					return
				}
				granted.Add(g.Units)
			}
		})
	}
	wg.Wait()
	if granted.Load() != limit || b.spent(t, first, "f.v.account.two") != limit {
		t.Errorf("granted %d, charged %d, want %d", granted.Load(), b.spent(t, first, "f.v.account.two"), limit)
	}
}

// TestFrozenOwnerIsPassedOver: who asks it loses the share of the time that
// owners get; soon everybody goes elsewhere.
func TestFrozenOwnerIsPassedOver(t *testing.T) {
	b := newBed(t, 1)
	o := b.member(t, "a", newRoster("a", "frozen"), ownerConfig{})
	if _, err := o.nc.Subscribe(ownerSubject+"frozen", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	key := keyOwnedBy(t, o, "frozen")
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		g, err := o.Exchange(ctx, named("a", needs(key, perDay(100), 1)))
		cancel()
		if err != nil || g.Units != 1 {
			t.Fatalf("granted %d, %v", g.Units, err)
		}
	}
	// One found out, another may have come while it was being probed.
	if n := testutil.ToFloat64(o.metrics.asks[askSilent]); n < 1 || n > 2 {
		t.Errorf("%v exchanges waited for the frozen owner, want 1 or 2", n)
	}
	if got := b.spent(t, o, key); got != 20 {
		t.Errorf("%d charged, want 20", got)
	}
}

// TestSilenceEnds: a node that stood still owns its counters again as soon as
// it moves, and one that is gone is not asked for ever.
func TestSilenceEnds(t *testing.T) {
	b := newBed(t, 1)
	list := newRoster("a", "slow", "gone")
	o := b.member(t, "a", list, ownerConfig{Probe: 20 * time.Millisecond})
	slow := newOwners(o.nc, o.settler, list, "slow", ownerConfig{}, newMetrics(nil))
	var still atomic.Bool
	still.Store(true)
	if _, err := o.nc.Subscribe(ownerSubject+"slow", func(m *nats.Msg) {
		if !still.Load() {
			slow.take(m)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for _, node := range []string{"slow", "gone"} {
		key := keyOwnedBy(t, o, node)
		if _, err := o.Exchange(t.Context(), named("a", needs(key, perDay(100), 1))); err != nil {
			t.Fatal(err)
		}
		if !within(bedWait, func() bool { return o.places.owner(key) != node }) {
			t.Errorf("%s is still asked", node)
		}
	}
	still.Store(false)
	if !within(bedWait, func() bool { return !isSilent(o.places.silents.Load(), "slow") }) {
		t.Error("passed over although it answers")
	}
	if !isSilent(o.places.silents.Load(), "gone") {
		t.Error("asked although it is gone")
	}
	list.set("a", "slow")
	if !within(bedWait, func() bool { return !isSilent(o.places.silents.Load(), "gone") }) {
		t.Error("still probed although it is not on the list")
	}
}

// TestLostAnswerIsNotSettledTwice: the owner settles, its answer gets lost, the
// node asks the store, and the record tells.
func TestLostAnswerIsNotSettledTwice(t *testing.T) {
	b := newBed(t, 1)
	list := newRoster("a", "mute")
	o := b.member(t, "a", list, ownerConfig{})
	mute := newOwners(o.nc, b.settler(t, "mute"), list, "mute", ownerConfig{}, newMetrics(nil))
	if _, err := o.nc.Subscribe(ownerSubject+"mute", func(m *nats.Msg) { m.Reply = ""; mute.take(m) }); err != nil {
		t.Fatal(err)
	}
	key := keyOwnedBy(t, o, "mute")
	x := needs(key, perDay(100), 7)
	x.Posts = []ratelimit.Post{{Units: 3, At: o.settler.clock.Now()}}
	g, err := o.Exchange(t.Context(), named("a", x))
	if err != nil || g.Units != 7 {
		t.Fatalf("granted %d, %v; want 7", g.Units, err)
	}
	if n := testutil.ToFloat64(mute.metrics.served); n != 1 {
		t.Fatalf("the owner settled %v exchanges, want 1", n)
	}
	if got := b.spent(t, o, key); got != 10 {
		t.Errorf("%d charged, want 10", got)
	}
	if left := g.State.Available(perDay(100), g.At); left != 90 {
		t.Errorf("the answer says %d are left, want 90", left)
	}
}

// TestLateOwnerDoesNotSettleAgain: what the node settled itself meanwhile is
// answered and not applied, and what is too long ago to tell is refused.
func TestLateOwnerDoesNotSettleAgain(t *testing.T) {
	b := newBed(t, 1)
	key := ratelimit.Key("f.v.account.late")
	direct, late := b.settler(t, "a"), b.settler(t, "owner")
	issued := direct.clock.Now()
	// The owner remembers the counter from before.
	if _, err := late.Exchange(t.Context(), needs(key, perDay(1000), 1)); err != nil {
		t.Fatal(err)
	}
	x := named("a", needs(key, perDay(1000), 5))
	if _, err := direct.exchange(t.Context(), x, itinerary{travels: true, repeated: true, issued: issued}); err != nil {
		t.Fatal(err)
	}
	g, err := late.exchange(t.Context(), x, itinerary{travels: true, issued: issued})
	if err != nil || g.Units != 5 {
		t.Errorf("granted %d, %v; want the same 5", g.Units, err)
	}
	for i := range journalEntries + 1 { // push it out of the record
		y := named(fmt.Sprintf("b-%d", i), needs(key, perDay(1000), 1))
		if _, err := late.exchange(t.Context(), y, itinerary{travels: true, issued: late.clock.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	_, err = direct.exchange(t.Context(), x, itinerary{travels: true, repeated: true, issued: issued})
	if !errors.Is(err, ratelimit.ErrUnknown) {
		t.Errorf("%v, want ErrUnknown", err)
	}
	v, rec := b.stored(t, direct.bucket.js, key)
	if got := 1000 - rec.counter.Available(perDay(1000), direct.clock.Now()); got != 1+5+journalEntries+1 {
		t.Errorf("%d charged, want %d", got, 1+5+journalEntries+1)
	}
	t.Logf("a record with a full journal takes %d bytes", len(v.data))
}

// TestWhatCameToNothingIsNotSettledLater: a node gave its owner up, asked the
// store whether its exchange was settled, and heard that it was not. The owner
// that comes to it afterwards charges nothing, for nobody would hand it back.
func TestWhatCameToNothingIsNotSettledLater(t *testing.T) {
	for _, before := range []int64{0, 3} {
		b := newBed(t, 1)
		key := ratelimit.Key("f.v.account.overdue")
		direct, late := b.settler(t, "a"), b.settler(t, "owner")
		issued := direct.clock.Now()
		if before > 0 { // the owner remembers the counter
			if _, err := late.Exchange(t.Context(), needs(key, perDay(100), before)); err != nil {
				t.Fatal(err)
			}
		}
		x := named("a", needs(key, perDay(100), 5))
		asked := x
		asked.Needs, asked.Issued = nil, issued
		if g, err := direct.Exchange(t.Context(), asked); err != nil || g.Units != 0 {
			t.Fatalf("granted %d, %v; want nothing", g.Units, err)
		}
		g, err := late.exchange(t.Context(), x, itinerary{travels: true, issued: issued})
		if err != nil || g.Units != 0 {
			t.Errorf("granted %d, %v; want nothing any more", g.Units, err)
		}
		_, rec := b.stored(t, direct.bucket.js, key)
		if got := 100 - rec.counter.Available(perDay(100), direct.clock.Now()); got != before {
			t.Errorf("%d charged, want %d", got, before)
		}
	}
}

// TestRepeatInDoubt: a node that can ask neither its owner nor the store knows
// nothing of its exchange.
func TestRepeatInDoubt(t *testing.T) {
	b := newBed(t, 1)
	o := b.member(t, "a", newRoster("a", "frozen"), ownerConfig{})
	asked := make(chan struct{}, 1)
	if _, err := o.nc.Subscribe(ownerSubject+"frozen", func(*nats.Msg) {
		b.servers[0].Shutdown()
		asked <- struct{}{}
	}); err != nil {
		t.Fatal(err)
	}
	key := keyOwnedBy(t, o, "frozen")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := o.Exchange(ctx, named("a", needs(key, perDay(100), 1)))
	<-asked
	if !errors.Is(err, ratelimit.ErrUnknown) || errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("%v, want ErrUnknown and not ErrUnavailable", err)
	}
}

// TestDrainingOwnerDeclines: it finishes what it took, and sends others away at
// once instead of letting them wait.
func TestDrainingOwnerDeclines(t *testing.T) {
	b := newBed(t, 1)
	nodes := b.members(t, 2, patientOwners)
	key := keyOwnedBy(t, nodes[0], "node-1")
	x := func() ratelimit.Exchange { return named("node-0", needs(key, perDay(100), 1)) }
	if _, err := nodes[0].Exchange(t.Context(), x()); err != nil {
		t.Fatal(err)
	}
	if err := nodes[1].Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	g, err := nodes[0].Exchange(t.Context(), x())
	if err != nil || g.Units != 1 || time.Since(started) > patientOwners.Answer/2 {
		t.Errorf("granted %d, %v, after %v", g.Units, err, time.Since(started))
	}
	served, declined := nodes[1].metrics.served, nodes[0].metrics.asks[askDeclined]
	if testutil.ToFloat64(served) != 1 || testutil.ToFloat64(declined) != 1 {
		t.Errorf("%v served, %v declined, want one of each", testutil.ToFloat64(served), testutil.ToFloat64(declined))
	}
}

// TestGoneOwner: nobody hears on its subject, and the exchange goes on at once.
func TestGoneOwner(t *testing.T) {
	b := newBed(t, 1)
	o := b.member(t, "a", newRoster("a", "gone"), patientOwners)
	key := keyOwnedBy(t, o, "gone")
	started := time.Now()
	g, err := o.Exchange(t.Context(), named("a", needs(key, perDay(100), 1)))
	if err != nil || g.Units != 1 || time.Since(started) > patientOwners.Answer/2 {
		t.Errorf("granted %d, %v, after %v", g.Units, err, time.Since(started))
	}
}
