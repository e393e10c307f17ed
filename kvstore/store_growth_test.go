package kvstore

import (
	"testing"

	"github.com/headgate-io/headgate/ratelimit"
)

// A node that was alone becomes one of three: what was spent stays spent, the
// secret stays the same, and every bucket has three replicas.
func TestStore_growsFromOneToThree(t *testing.T) {
	cfgs := memberConfigs(t)
	alone := cfgs[0]
	alone.Cluster = Cluster{}
	const key = ratelimit.Key("f.v.account.a")

	s := startStore(t, alone)
	awaitJoined(t, s)
	if got := spend(t, s, key, 1, 4); got != 4 {
		t.Fatalf("got %d of 4 units", got)
	}
	secret, err := s.KeySecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stopStore(t, s)

	stores := startStores(t, cfgs)
	awaitJoined(t, stores...)
	if got := spend(t, stores[1], key, 2, 10); got != 6 {
		t.Errorf("got %d units after growing, want the 6 that were left", got)
	}
	after, err := stores[0].KeySecret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if string(after) != string(secret) {
		t.Error("the secret changed")
	}
	st, err := stores[2].Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range st.Buckets {
		if len(b.Replicas) != 3 || b.Leader == "" {
			t.Errorf("bucket %s: %+v, want three replicas and a leader", b.Name, b)
		}
	}
	if len(st.Nodes) != 3 {
		t.Errorf("nodes: %+v, want three", st.Nodes)
	}
}

// A cluster that kept one replica of everything raises it when it is told to,
// and a node with a lower number does not lower it again.
func TestStore_raisesReplicasAndNeverLowers(t *testing.T) {
	cfgs := memberConfigs(t)
	for i := range cfgs {
		cfgs[i].Replicas = 1
	}
	stores := startStores(t, cfgs)
	awaitJoined(t, stores...)
	const key = ratelimit.Key("f.v.account.a")
	if got := spend(t, stores[0], key, 1, 4); got != 4 {
		t.Fatalf("got %d of 4 units", got)
	}

	stopStore(t, stores[2])
	raised := cfgs[2]
	raised.Replicas = 3
	third := startStore(t, raised)
	awaitJoined(t, third)
	for _, b := range bucketNames() {
		info, err := bucketInfo(t.Context(), third.JetStream(), b)
		if err != nil {
			t.Fatal(err)
		}
		if info.Config.Replicas != 3 {
			t.Errorf("bucket %s has %d replicas, want 3", b, info.Config.Replicas)
		}
	}
	await(t, "the others are content", func() bool { return failing(stores[0]) == nil })
	if got := spend(t, third, key, 2, 10); got != 6 {
		t.Errorf("got %d units after raising, want the 6 that were left", got)
	}
	info, err := bucketInfo(t.Context(), third.JetStream(), CountersBucket)
	if err != nil {
		t.Fatal(err)
	}
	if info.Config.Replicas != 3 {
		t.Errorf("replicas were lowered to %d", info.Config.Replicas)
	}
}
