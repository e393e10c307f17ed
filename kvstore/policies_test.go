package kvstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

func TestPolicies_edit(t *testing.T) {
	t.Parallel()
	bed := newPolicyBed(t)
	p := newPolicies(bed)
	ctx := t.Context()
	first := of(t, "function: f\naccount: {rates: 10-S}\n")

	rev, err := p.Put(ctx, first, 0)
	if err != nil || rev != 1 {
		t.Fatalf("create: revision %d, %v", rev, err)
	}
	var conflict *PolicyConflict
	if _, err = p.Put(ctx, first, 0); !errors.As(err, &conflict) || conflict.Current != 1 {
		t.Fatalf("create again: %v", err)
	}
	if _, err = p.Put(ctx, first, 7); !errors.Is(err, ErrPolicyConflict) {
		t.Fatalf("update of another revision: %v", err)
	}
	if rev, err = p.Put(ctx, of(t, "function: f\naccount: {rates: 20-S}\n"), rev); err != nil || rev != 2 {
		t.Fatalf("update: revision %d, %v", rev, err)
	}
	got, err := p.Get(ctx, "f", "*")
	if err != nil || got.Revision != "2" || got.Source != policy.Bucket || got.Account[0].Units != 20 {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := p.Delete(ctx, "f", "*", 1); !errors.Is(err, ErrPolicyConflict) {
		t.Fatalf("delete of another revision: %v", err)
	}
	if err := p.Delete(ctx, "f", "*", 2); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Get(ctx, "f", "*"); !errors.Is(err, ErrPolicyNotFound) {
		t.Fatalf("get of what was deleted: %v", err)
	}
	if err := p.Delete(ctx, "f", "*", 0); !errors.Is(err, ErrPolicyNotFound) {
		t.Fatalf("delete of what was deleted: %v", err)
	}
	if _, err = p.Put(ctx, first, 0); err != nil {
		t.Fatalf("create of what was deleted: %v", err)
	}
	if _, err = p.Put(ctx, &ratelimit.Policy{Version: "*"}, 0); !errors.Is(err, policy.ErrPolicy) {
		t.Fatalf("an invalid policy: %v", err)
	}
}

func TestPolicies_apply(t *testing.T) {
	t.Parallel()
	bed := newPolicyBed(t)
	p := newPolicies(bed)
	kv := bed.kv(t)
	if _, err := kv.Put(t.Context(), "f./any", []byte("{not a policy")); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		text     string
		revision uint64
		changed  bool
	}{
		{"function: f\ntotal: {rates: 10-S}\n", 2, true}, // over what does not parse
		{"{function: f, version: '*', total: {rates: '10/1s'}, enforce: true}", 2, false},
		{"function: f\ntotal: {rates: 11-S}\n", 3, true},
		{"function: g\n", 4, true},
	}
	for i, s := range steps {
		rev, changed, err := p.Apply(t.Context(), of(t, s.text))
		if err != nil || rev != s.revision || changed != s.changed {
			t.Errorf("step %d: revision %d, changed %v, %v; want %d, %v", i, rev, changed, err, s.revision, s.changed)
		}
	}
}

// A change is in force within milliseconds; keys can be read by people.
func TestPolicies_watch(t *testing.T) {
	t.Parallel()
	bed := newPolicyBed(t)
	kv := bed.kv(t)
	p, f := watchPolicies(t, bed)
	untilList(t, f)
	if _, err := p.Put(t.Context(), of(t, "function: a.b\nversion: v1\n"), 0); err != nil {
		t.Fatal(err)
	}
	untilList(t, f, "a.b/v1@1")
	if _, err := kv.Get(t.Context(), "a=2Eb.v1"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Put(t.Context(), of(t, "function: '*'\n"), 0); err != nil {
		t.Fatal(err)
	}
	untilList(t, f, "*/*@2", "a.b/v1@1")
	if err := p.Delete(t.Context(), "a.b", "v1", 0); err != nil {
		t.Fatal(err)
	}
	untilList(t, f, "*/*@2")
	list, err := p.List(t.Context())
	if err != nil || len(list) != 1 || list[0].Function != "*" {
		t.Fatalf("list %v, %v", list, err)
	}
}

// Case 21 in part, and issue 5: a value that somebody wrote by hand and that
// does not parse leaves the last good one in force and is told once, with its
// key and what is wrong.
func TestPolicies_handWritten(t *testing.T) {
	t.Parallel()
	bed := newPolicyBed(t)
	kv := bed.kv(t)
	put := func(key, value string) {
		t.Helper()
		if _, err := kv.Put(t.Context(), key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	put("f./any", `{"function":"f","total":{"rates":"10-S"}}`)
	put("g./any", `{"function":"g","total":{"rates":"10-X"}}`)
	p, f := watchPolicies(t, bed)
	if err := next(t, f.faults, "fault"); !strings.Contains(err.Error(), `key g./any: line 1: total.rates: "10-X"`) {
		t.Fatal(err)
	}
	untilList(t, f, "f/*@1")

	bad := []struct{ value, want string }{
		{`{"function":"f","total":{"rates":""}}`, "total.rates: no rate given"},
		{`{"function":"f"`, "not JSON"},
		{``, "holds 0 policies"},
		{`[{"function":"f"},{"function":"g"}]`, "holds 2 policies"},
		{`{"function":"other"}`, "holds the policy of key other./any"},
		{`{"function":"f","limit":1}`, "unknown field"},
	}
	for _, b := range bad {
		put("f./any", b.value)
		if err := next(t, f.faults, b.want); !strings.Contains(err.Error(), "f./any") || !strings.Contains(err.Error(), b.want) {
			t.Errorf("fault %v, want %q", err, b.want)
		}
	}
	if _, err := p.List(t.Context()); !errors.Is(err, policy.ErrPolicy) || len(policy.Faults(err)) != 2 {
		t.Errorf("list: %v", err)
	}
	put("h./any", `{"function":"h"}`)
	untilList(t, f, "f/*@1", "h/*@9")
	put("f./any", `{"function":"f","total":{"rates":"20-S"}}`)
	untilList(t, f, "f/*@10", "h/*@9")
	if len(f.recovered) != 0 {
		t.Error("recovered while g is still broken")
	}
	if err := p.Delete(t.Context(), "g", "*", 0); err != nil {
		t.Fatal(err)
	}
	next(t, f.recovered, "recovery")
	if len(f.faults) != 0 {
		t.Errorf("told again: %v", <-f.faults)
	}
}

// The store goes away and comes back with changes that the watch was not told.
func TestPolicies_storeAway(t *testing.T) {
	t.Parallel()
	bed := newPolicyBed(t)
	p, f := watchPolicies(t, bed)
	untilList(t, f)
	if _, err := p.Put(t.Context(), of(t, "function: a\n"), 0); err != nil {
		t.Fatal(err)
	}
	untilList(t, f, "a/*@1")
	for round := range 3 {
		bed.stop()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		_, err := p.Put(ctx, of(t, "function: b\n"), 0)
		cancel()
		if !errors.Is(err, ratelimit.ErrUnavailable) && !errors.Is(err, ratelimit.ErrUnknown) {
			t.Fatalf("put without a store: %v", err)
		}
		bed.start(t)
		name := fmt.Sprintf("n%d", round)
		other, err := nats.Connect(bed.server.ClientURL())
		if err != nil {
			t.Fatal(err)
		}
		js, err := jetstream.New(other)
		if err != nil {
			t.Fatal(err)
		}
		kv, err := js.KeyValue(t.Context(), PoliciesBucket)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kv.Put(t.Context(), name+"./any", []byte(`{"function":"`+name+`"}`)); err != nil {
			t.Fatal(err)
		}
		other.Close()
		back := time.Now()
		for list := next(t, f.lists, name); !slices.ContainsFunc(list, func(p *ratelimit.Policy) bool { return p.Function == name }); {
			list = next(t, f.lists, name)
		}
		t.Logf("in force %s after it was written", time.Since(back))
	}
	if len(f.faults) != 0 {
		t.Errorf("the store being away was told as a fault of its policies: %v", <-f.faults)
	}
}

// The bucket vanishes: the last good policies stay; a new one is taken.
func TestPolicies_bucketGone(t *testing.T) {
	t.Parallel()
	bed := newPolicyBed(t)
	p, f := watchPolicies(t, bed)
	if _, err := p.Put(t.Context(), of(t, "function: a\n"), 0); err != nil {
		t.Fatal(err)
	}
	untilList(t, f, "a/*@1")
	if err := bed.js.DeleteStream(t.Context(), streamPrefix+PoliciesBucket); err != nil {
		t.Fatal(err)
	}
	if err := next(t, f.faults, "fault"); !errors.Is(err, jetstream.ErrBucketNotFound) {
		t.Fatal(err)
	}
	if _, err := bed.js.CreateStream(t.Context(), bucketConfig(PoliciesBucket, 1)); err != nil {
		t.Fatal(err)
	}
	next(t, f.recovered, "recovery")
	untilList(t, f)
}

// Ten thousand policies arrive as one list, and one change of them at once.
func TestPolicies_tenThousand(t *testing.T) {
	t.Parallel()
	bed := newPolicyBed(t)
	for i := range 10_000 {
		value := fmt.Sprintf(`{"function":"f%d","account":{"rates":"10-S,1000-H"}}`, i)
		if _, err := bed.js.PublishAsync(fmt.Sprintf("%sf%d./any", subjectPrefix(PoliciesBucket), i), []byte(value)); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 999 {
			next(t, bed.js.PublishAsyncComplete(), "publishing")
		}
	}
	start := time.Now()
	p, f := watchPolicies(t, bed)
	if list := next(t, f.lists, "list"); len(list) != 10_000 {
		t.Fatalf("the first list has %d policies", len(list))
	}
	loaded := time.Since(start)
	start = time.Now()
	if _, _, err := p.Apply(t.Context(), of(t, "function: f77\n")); err != nil {
		t.Fatal(err)
	}
	next(t, f.lists, "change")
	if took := time.Since(start); loaded > 3*time.Second || took > time.Second {
		t.Errorf("loading took %s, a change %s", loaded, took)
	}
	t.Logf("loading took %s, a change %s", loaded, time.Since(start))
}
