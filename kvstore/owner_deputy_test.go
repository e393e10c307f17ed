package kvstore

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
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
// deputy alone writes, and those that gather while it does have one write. In
// virtual time: it is all about who waits how long for whom.
func TestDeputySettlesForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newSimWorld(simScenario{
			nodes:  10,
			config: ratelimit.DefaultConfig(),
			plan:   simPlan{Latency: time.Millisecond},
			policy: &ratelimit.Policy{Function: "f", Version: ratelimit.Any},
		}, simTamper{})
		for _, n := range w.nodes {
			n.start()
		}
		frozen, deputy, others := w.nodes[0], w.nodes[1], w.nodes[2:]
		frozen.freeze()
		key := keyOf(t, deputy.life.owners, frozen.name, deputy.name)
		var asking sync.WaitGroup
		for _, n := range w.nodes[1:] {
			asking.Go(func() {
				g, err := n.life.owners.Exchange(t.Context(), named(n.name, needs(key, perDay(100), 1)))
				if err != nil || g.Units != 1 {
					t.Errorf("%s: granted %d, %v", n.name, g.Units, err)
				}
			})
		}
		asking.Wait()
		silent, deputized := testutil.ToFloat64(w.metrics.asks[askSilent]), testutil.ToFloat64(w.metrics.asks[askDeputized])
		if silent != 1 || deputized != float64(len(others)) {
			t.Errorf("%v went on by themselves, the deputy settled for %v; want the deputy alone, and %d", silent, deputized, len(others))
		}
		writes, conflicts := testutil.ToFloat64(w.metrics.writes), testutil.ToFloat64(w.metrics.conflicts)
		if writes > 2 || conflicts != 0 {
			t.Errorf("%v writes and %v conflicts, want one write for the first, one for the rest", writes, conflicts)
		}
		charged := simUsed(perDay(100)[0], w.store.record(simSubjects+string(key)).counter, w.truth.Now())
		if charged != int64(len(others))+1 {
			t.Errorf("%d charged, want %d", charged, len(others)+1)
		}
		w.heal()
		w.stop()
		w.net.flights.Wait()
		for _, fault := range w.faults {
			t.Error(fault)
		}
	})
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
