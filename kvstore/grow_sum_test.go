package kvstore

import (
	"reflect"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// What was spent while alone and what was spent in the cluster is spent.
func TestSumCounters(t *testing.T) {
	sliding := func(slots ...counter.Slot) counter.Window {
		return counter.Window{Period: time.Minute, Algorithm: counter.Sliding, Slots: slots}
	}
	for _, c := range []struct {
		name       string
		a, b, want counter.Counter
	}{
		{name: "nothing and nothing"},
		{
			"slots interleave",
			counter.Counter{Seen: 5, Windows: []counter.Window{sliding(counter.Slot{Slice: 1, Units: 2}, counter.Slot{Slice: 3, Units: 1})}},
			counter.Counter{Seen: 7, Windows: []counter.Window{sliding(counter.Slot{Slice: 2, Units: 4}, counter.Slot{Slice: 3, Units: 5}, counter.Slot{Slice: 9, Units: 1})}},
			counter.Counter{Seen: 7, Windows: []counter.Window{sliding(
				counter.Slot{Slice: 1, Units: 2}, counter.Slot{Slice: 2, Units: 4}, counter.Slot{Slice: 3, Units: 6}, counter.Slot{Slice: 9, Units: 1})}},
		},
		{
			"windows of different rates stand side by side",
			counter.Counter{Windows: []counter.Window{sliding(counter.Slot{Slice: 1, Units: 2})}},
			counter.Counter{Windows: []counter.Window{{Period: time.Hour, Algorithm: counter.Fixed, Opened: 3, Owed: 2}}},
			counter.Counter{Windows: []counter.Window{sliding(counter.Slot{Slice: 1, Units: 2}), {Period: time.Hour, Algorithm: counter.Fixed, Opened: 3, Owed: 2}}},
		},
		{
			"a fixed window closes with the later one",
			counter.Counter{Windows: []counter.Window{{Period: time.Hour, Algorithm: counter.Fixed, Opened: 3, Owed: 2}}},
			counter.Counter{Windows: []counter.Window{{Period: time.Hour, Algorithm: counter.Fixed, Opened: 5, Owed: 4}}},
			counter.Counter{Windows: []counter.Window{{Period: time.Hour, Algorithm: counter.Fixed, Opened: 5, Owed: 6}}},
		},
		{
			"parts of a unit add up to one",
			counter.Counter{Windows: []counter.Window{{Period: 10, Algorithm: counter.TokenBucket, Opened: 3, Owed: 2, Part: 7}}},
			counter.Counter{Windows: []counter.Window{{Period: 10, Algorithm: counter.TokenBucket, Opened: 3, Owed: 1, Part: 5}}},
			counter.Counter{Windows: []counter.Window{{Period: 10, Algorithm: counter.TokenBucket, Opened: 3, Owed: 4, Part: 2}}},
		},
		{
			"no overflow",
			counter.Counter{Windows: []counter.Window{{Period: time.Hour, Algorithm: counter.Fixed, Opened: 3, Owed: counter.MaxUnits}}},
			counter.Counter{Windows: []counter.Window{{Period: time.Hour, Algorithm: counter.Fixed, Opened: 3, Owed: counter.MaxUnits}}},
			counter.Counter{Windows: []counter.Window{{Period: time.Hour, Algorithm: counter.Fixed, Opened: 3, Owed: counter.MaxUnits}}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sumCounters(c.a, c.b); !reflect.DeepEqual(got.Windows, c.want.Windows) || got.Seen != c.want.Seen {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// A counter that the cluster spent too is added up, with a time to live; what
// the cluster has otherwise stands.
func TestGrow_addsToWhatTheClusterSpent(t *testing.T) {
	alone, cluster := startStore(t, testConfig(t)), startStore(t, testConfig(t))
	awaitJoined(t, alone, cluster)
	spend(t, alone, "f.v.account.both", 1, 4)
	spend(t, alone, "f.v.account.old", 2, 4)
	spend(t, cluster, "f.v.account.both", 3, 3)
	before, err := cluster.KeySecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, bucket := range []string{settingsBucket, PoliciesBucket, CountersBucket} {
		if _, err := cluster.copyBucket(t.Context(), alone.JetStream(), bucket); err != nil {
			t.Fatalf("%s: %v", bucket, err)
		}
	}
	// A restart forgets what the node remembers of its counters.
	stopStore(t, cluster)
	again := startStore(t, cluster.cfg)
	awaitJoined(t, again)
	for key, left := range map[ratelimit.Key]int64{"f.v.account.both": 3, "f.v.account.old": 6} {
		m, err := newCountersBucket(again.JetStream(), streamPrefix+CountersBucket).read(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if ttl := recordTTL(m.header); ttl < time.Hour || ttl > 2*time.Hour+5*time.Second {
			t.Errorf("%s lives for %v, want one to two hours", key, ttl)
		}
		if got := spend(t, again, key, 9, 10); got != left {
			t.Errorf("%s: got %d units, want %d", key, got, left)
		}
	}
	if after, err := again.KeySecret(t.Context()); err != nil || string(after) != string(before) {
		t.Errorf("the cluster's secret was replaced (%v)", err)
	}
}
