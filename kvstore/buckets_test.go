package kvstore

import (
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
)

// The counters bucket is exactly what the design says, and a key-value bucket
// for every client.
func TestBuckets_asDesigned(t *testing.T) {
	s := startStore(t, testConfig(t))
	awaitJoined(t, s)
	info, err := bucketInfo(t.Context(), s.JetStream(), CountersBucket)
	if err != nil {
		t.Fatal(err)
	}
	c := info.Config
	for what, ok := range map[string]bool{
		"file storage":                c.Storage == jetstream.FileStorage,
		"one replica":                 c.Replicas == 1,
		"one message a subject":       c.MaxMsgsPerSubject == 1,
		"discard new":                 c.Discard == jetstream.DiscardNew,
		"per-message expiry":          c.AllowMsgTTL,
		"no delete markers":           c.SubjectDeleteMarkerTTL == 0,
		"no direct reads":             !c.AllowDirect,
		"no age limit":                c.MaxAge == 0,
		"the format's version":        c.Metadata[formatKey] == "1",
		"the bucket's subjects":       reflect.DeepEqual(c.Subjects, []string{"$KV.headgate_counters.>"}),
		"nothing else is dropped":     c.MaxMsgs == -1 && c.MaxBytes == -1,
		"a name that KV clients know": c.Name == "KV_headgate_counters",
	} {
		if !ok {
			t.Errorf("not so: %s (%+v)", what, c)
		}
	}
	for _, b := range bucketNames() {
		if _, err := s.JetStream().KeyValue(t.Context(), b); err != nil {
			t.Errorf("key-value bucket %s: %v", b, err)
		}
	}
}

// A bucket that was made by hand is put right where nothing is lost by it, and
// what an operator chose stays.
func TestBuckets_repaired(t *testing.T) {
	s := startStore(t, testConfig(t))
	awaitJoined(t, s)
	js := s.JetStream()
	wrong := bucketConfig("by_hand", 1)
	wrong.AllowMsgTTL = false
	wrong.AllowDirect = true
	wrong.Discard = jetstream.DiscardOld
	wrong.MaxAge = time.Hour
	wrong.MaxMsgsPerSubject = 7
	wrong.MaxBytes = 1 << 20
	wrong.Metadata = map[string]string{"owner": "me"}
	if _, err := js.CreateStream(t.Context(), wrong); err != nil {
		t.Fatal(err)
	}
	want := bucketConfig("by_hand", 1)
	info, err := openBucket(t.Context(), js, "by_hand", 1)
	if err != nil {
		t.Fatal(err)
	}
	got := info.Config
	if got.AllowMsgTTL != want.AllowMsgTTL || got.AllowDirect || got.Discard != want.Discard ||
		got.MaxAge != 0 || got.MaxMsgsPerSubject != 1 || got.Metadata[formatKey] != "1" {
		t.Errorf("not repaired: %+v", got)
	}
	if got.MaxBytes != 1<<20 || got.Metadata["owner"] != "me" {
		t.Errorf("an operator's choice was overwritten: %+v", got)
	}
	if _, changed := repair(got, want); changed {
		t.Error("a repaired bucket would be repaired again")
	}
}

// What cannot be repaired is named.
func TestBuckets_beyondRepair(t *testing.T) {
	s := startStore(t, testConfig(t))
	awaitJoined(t, s)
	wrong := bucketConfig("in_memory", 1)
	wrong.Storage = jetstream.MemoryStorage
	if _, err := s.JetStream().CreateStream(t.Context(), wrong); err != nil {
		t.Fatal(err)
	}
	_, err := openBucket(t.Context(), s.JetStream(), "in_memory", 1)
	var settings *settingsError
	if !errors.As(err, &settings) {
		t.Fatalf("openBucket = %v, want a settingsError", err)
	}
	if got, want := err.Error(), "bucket in_memory: [storage is Memory, must be File]"; got != want {
		t.Errorf("error %q, want %q", got, want)
	}
}

// Nodes that make a bucket at the same time all get it.
func TestBuckets_madeAtTheSameTime(t *testing.T) {
	s := startStore(t, testConfig(t))
	awaitJoined(t, s)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, err := openBucket(t.Context(), s.JetStream(), "contended", 1); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// Buckets of a newer release are left alone: exchanges say that the store is
// away and why, the check names it, and all is well again when they go back.
func TestStore_leavesNewerBucketsAlone(t *testing.T) {
	s := startStore(t, testConfig(t))
	awaitJoined(t, s)
	const key = ratelimit.Key("f.v.account.a")
	spend(t, s, key, 1, 4)
	setFormat := func(format string) {
		t.Helper()
		info, err := bucketInfo(t.Context(), s.JetStream(), CountersBucket)
		if err != nil {
			t.Fatal(err)
		}
		info.Config.Metadata[formatKey] = format
		if _, err := s.JetStream().UpdateStream(t.Context(), info.Config); err != nil {
			t.Fatal(err)
		}
	}
	setFormat("2")
	await(t, "exchanges are refused", func() bool {
		_, err := s.Exchange(t.Context(), ratelimit.Exchange{Key: key})
		return errors.Is(err, ratelimit.ErrNewerFormat) && errors.Is(err, ratelimit.ErrUnavailable)
	})
	if err := failing(s); err == nil {
		t.Error("no check fails")
	}
	info, err := bucketInfo(t.Context(), s.JetStream(), CountersBucket)
	if err != nil {
		t.Fatal(err)
	}
	if info.Config.Metadata[formatKey] != "2" || info.State.Msgs != 1 {
		t.Errorf("the bucket was touched: %+v", info)
	}
	setFormat("1")
	await(t, "exchanges go on", func() bool { return failing(s) == nil })
	if got := spend(t, s, key, 2, 10); got != 6 {
		t.Errorf("got %d units, want the 6 that were left", got)
	}
}

// A node that starts on buckets of a newer release does not join.
func TestStore_doesNotJoinNewerBuckets(t *testing.T) {
	cfg := testConfig(t)
	first := startStore(t, cfg)
	awaitJoined(t, first)
	info, err := bucketInfo(t.Context(), first.JetStream(), NodesBucket)
	if err != nil {
		t.Fatal(err)
	}
	info.Config.Metadata[formatKey] = "99"
	if _, err := first.JetStream().UpdateStream(t.Context(), info.Config); err != nil {
		t.Fatal(err)
	}
	stopStore(t, first)

	second := startStore(t, cfg)
	await(t, "the check names it", func() bool {
		err := second.Checks()[1].Err
		return errors.Is(err, ratelimit.ErrNewerFormat)
	})
	if _, err := second.Exchange(t.Context(), ratelimit.Exchange{Key: "f.v.account.a"}); !errors.Is(err, ratelimit.ErrNewerFormat) {
		t.Errorf("exchange: %v, want ErrNewerFormat", err)
	}
	select {
	case <-second.Joined():
		t.Error("it joined")
	default:
	}
}
