package kvstore

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/headgate-io/headgate/kvstore/recordpb"
	"github.com/headgate-io/headgate/ratelimit"
)

// keyOf finds a counter with that owner and that deputy.
func keyOf(tb testing.TB, o *owners, owner, deputy string) ratelimit.Key {
	tb.Helper()
	for i := range 10_000 {
		key := ratelimit.Key(fmt.Sprintf("f.v.account.%d", i))
		if o.places.owner(key) == owner && o.places.deputy(key, owner) == deputy {
			return key
		}
	}
	tb.Fatalf("%s is nowhere the deputy of %s", deputy, owner)
	return ""
}

// TestDeputySettlesForAll: many nodes miss one owner's answer together. The
// deputy alone writes, and those that gather while it does have one write.
func TestDeputySettlesForAll(t *testing.T) {
	b := newBed(t, 3)
	names := []string{"frozen"}
	for i := range 9 {
		names = append(names, fmt.Sprintf("node-%d", i))
	}
	list := newRoster(names...)
	var nodes []*owners
	for _, name := range names[1:] {
		nodes = append(nodes, b.member(t, name, list, ownerConfig{Answer: time.Second}))
	}
	deputy, others := nodes[0], nodes[1:]
	if _, err := deputy.nc.Subscribe(ownerSubject+"frozen", func(*nats.Msg) {}); err != nil {
		t.Fatal(err)
	}
	if err := deputy.settler.bucket.js.Conn().Flush(); err != nil {
		t.Fatal(err)
	}
	// Its first write takes until all have come.
	deputy.settler.bucket.js = &lossy{
		JetStream: deputy.settler.bucket.js,
		publish: once(func(send func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
			if !within(bedWait, func() bool { return testutil.ToFloat64(deputy.metrics.served) == float64(len(others)) }) {
				t.Error("not all come to the deputy")
			}
			return send()
		}),
	}
	key := keyOf(t, deputy, "frozen", deputy.node)
	var asking sync.WaitGroup
	for _, o := range nodes {
		asking.Go(func() {
			g, err := o.Exchange(t.Context(), named(o.node, needs(key, perDay(100), 1)))
			if err != nil || g.Units != 1 {
				t.Errorf("%s: granted %d, %v", o.node, g.Units, err)
			}
		})
	}
	asking.Wait()
	for _, o := range others {
		deputized, writes := o.metrics.asks[askDeputized], o.metrics.writes
		if testutil.ToFloat64(deputized) != 1 || testutil.ToFloat64(writes) != 0 {
			t.Errorf("%s: %v settled by the deputy and %v written, want 1 and none",
				o.node, testutil.ToFloat64(deputized), testutil.ToFloat64(writes))
		}
	}
	writes, conflicts := testutil.ToFloat64(deputy.metrics.writes), testutil.ToFloat64(deputy.metrics.conflicts)
	if writes > 2 || conflicts != 0 {
		t.Errorf("%v writes and %v conflicts, want one write for the first, one for the rest", writes, conflicts)
	}
	if got := b.spent(t, deputy, key); got != int64(len(nodes)) {
		t.Errorf("%d charged, want %d", got, len(nodes))
	}
}

// TestDeputyKnowsWhatTheOwnerSettled: only the owner's answer got lost, and the
// deputy had seen the counter before.
func TestDeputyKnowsWhatTheOwnerSettled(t *testing.T) {
	b := newBed(t, 1)
	list := newRoster("a", "mute", "deputy")
	o, deputy := b.member(t, "a", list, ownerConfig{}), b.member(t, "deputy", list, ownerConfig{})
	mute := newOwners(o.nc, b.settler(t, "mute"), list, "mute", ownerConfig{}, newMetrics(nil))
	if _, err := o.nc.Subscribe(ownerSubject+"mute", func(m *nats.Msg) { m.Reply = ""; mute.take(m) }); err != nil {
		t.Fatal(err)
	}
	key := keyOf(t, o, "mute", "deputy")
	if _, err := deputy.settler.Exchange(t.Context(), needs(key, perDay(100), 1)); err != nil {
		t.Fatal(err)
	}
	g, err := o.Exchange(t.Context(), named("a", needs(key, perDay(100), 7)))
	if err != nil || g.Units != 7 {
		t.Errorf("granted %d, %v; want 7", g.Units, err)
	}
	if got := b.spent(t, o, key); got != 8 {
		t.Errorf("%d charged, want 8", got)
	}
}

// TestReleaseWithoutDeputies: a node that hears of no deputies is not asked to be
// one, and keeps its own counters.
func TestReleaseWithoutDeputies(t *testing.T) {
	b := newBed(t, 1)
	o := b.member(t, "a", newRoster("a", "frozen", "old"), ownerConfig{Answer: time.Second})
	for node, take := range map[string]nats.MsgHandler{
		"frozen": func(*nats.Msg) {},
		"old": func(m *nats.Msg) {
			if len(m.Data) > 0 {
				t.Error("it is asked for an exchange")
			}
			o.respond(m, &recordpb.Answer{Outcome: recordpb.Outcome_OUTCOME_READY})
		},
	} {
		if _, err := o.nc.Subscribe(ownerSubject+node, take); err != nil {
			t.Fatal(err)
		}
	}
	key := keyOf(t, o, "frozen", "old")
	g, err := o.Exchange(t.Context(), named("a", needs(key, perDay(100), 1)))
	if err != nil || g.Units != 1 || b.spent(t, o, key) != 1 {
		t.Errorf("granted %d, %v, %d charged", g.Units, err, b.spent(t, o, key))
	}
	if isSilent(o.places.silents.Load(), "old") {
		t.Error("passed over although it takes exchanges")
	}
}
