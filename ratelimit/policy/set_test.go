package policy

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// of makes policies from "function/version" texts; their source tells them
// apart.
func of(source string, names ...string) []*ratelimit.Policy {
	policies := make([]*ratelimit.Policy, len(names))
	for i, n := range names {
		function, version, _ := strings.Cut(n, "/")
		policies[i] = &ratelimit.Policy{Function: function, Version: version, Source: source, Revision: "1"}
	}
	return policies
}

func quiet() Option { return WithLogger(slog.New(slog.DiscardHandler)) }

func newTestSet(t testing.TB, cfg Config, sources []Source, opts ...Option) *Set {
	t.Helper()
	set, err := NewSet(cfg, sources, append([]Option{quiet()}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// The first source that knows the function wins; within it, the version.
func TestSet_specificity(t *testing.T) {
	t.Parallel()
	file, bucket := &list{name: File}, &list{name: Bucket}
	nvcf := &asked{list: list{name: NVCF}, answers: map[name]*ratelimit.Policy{}}
	for _, n := range []string{"a", "c", "remote"} {
		nvcf.answers[name{n, "v1"}] = of(NVCF, n+"/v1")[0]
	}
	set := newTestSet(t, DefaultConfig(), []Source{nvcf, bucket, file})
	file.feed.Replace(of(File, "a/*", "b/v1"))
	bucket.feed.Replace(of(Bucket, "a/v1", "b/v1", "b/*", "c/v2", "*/*"))

	tests := []struct{ ask, want, why string }{
		{"a/v1", "file a/*", "the file knows the function, though the bucket is more specific"},
		{"a/v2", "file a/*", "every version"},
		{"b/v1", "file b/v1", "the file comes first"},
		{"b/v2", "bucket b/*", "the file knows b in another version only"},
		{"c/v2", "bucket c/v2", "before NVCF is asked"},
		{"c/v1", "nvcf c/v1", "the bucket knows c in another version only"},
		{"c/v3", "bucket */*", "nobody knows this version"},
		{"remote/v1", "nvcf remote/v1", "NVCF is asked before the default is used"},
		{"unknown/v1", "bucket */*", "the default"},
	}
	for _, tt := range tests {
		function, version, _ := strings.Cut(tt.ask, "/")
		p, degraded := set.Find(t.Context(), function, version)
		if got := fmt.Sprintf("%s %s/%s", p.Source, p.Function, p.Version); got != tt.want || degraded {
			t.Errorf("%s: got %s (degraded %v), want %s: %s", tt.ask, got, degraded, tt.want, tt.why)
		}
	}
}

func TestSet_order(t *testing.T) {
	t.Parallel()
	file, bucket := &list{name: File}, &list{name: Bucket}
	cfg := DefaultConfig()
	cfg.Order = []string{Bucket, File}
	nvcf := &asked{list: list{name: NVCF}}
	set := newTestSet(t, cfg, []Source{file, bucket, nvcf})
	file.feed.Replace(of(File, "f/v1", "*/*"))
	bucket.feed.Replace(of(Bucket, "f/*", "*/*"))
	for _, ask := range []string{"f", "g"} {
		if p, _ := set.Find(t.Context(), ask, "v1"); p.Source != Bucket {
			t.Errorf("%s: got the policy of %s, want the bucket's", ask, p.Source)
		}
	}
	if nvcf.asks != 0 {
		t.Error("a source outside the order was asked")
	}
}

func TestSet_degraded(t *testing.T) {
	t.Parallel()
	file := &list{name: File}
	nvcf := &asked{list: list{name: NVCF}, fails: true}
	set := newTestSet(t, DefaultConfig(), []Source{file, nvcf})
	if p, degraded := set.Find(t.Context(), "f", "v"); p != nil || !degraded {
		t.Errorf("a failing source and no default: got %v, degraded %v", p, degraded)
	}
	file.feed.Replace(of(File, "*/*"))
	if p, degraded := set.Find(t.Context(), "f", "v"); p == nil || degraded {
		t.Errorf("a failing source and a default: got %v, degraded %v", p, degraded)
	}
	nvcf.fails = false
	file.feed.Replace(nil)
	if p, degraded := set.Find(t.Context(), "f", "v"); p != nil || degraded {
		t.Errorf("nobody knows the function: got %v, degraded %v", p, degraded)
	}
}

func TestSet_changes(t *testing.T) {
	t.Parallel()
	file, bucket := &list{name: File}, &list{name: Bucket}
	nvcf := &asked{list: list{name: NVCF}}
	reg := prometheus.NewPedanticRegistry()
	set := newTestSet(t, DefaultConfig(), []Source{file, bucket, nvcf}, WithRegisterer(reg))
	if err := set.Loaded(); !errors.Is(err, ErrNotLoaded) || !strings.HasSuffix(err.Error(), "file, bucket") {
		t.Errorf("before anything is loaded: %v", err)
	}
	seen := set.Generation()
	moved := func(why string) {
		t.Helper()
		if now := set.Generation(); now == seen {
			t.Errorf("generation stayed: %s", why)
		} else {
			seen = now
		}
	}
	file.feed.Replace(of(File, "f/v1"))
	moved("first list")
	nvcf.feed.Changed()
	moved("an asked source changed")
	deny := of(Bucket, "g/*")
	deny[0].OnStoreFailure = ratelimit.FailDeny
	if set.DeniesWithoutStore() {
		t.Error("denies without the store before any policy does")
	}
	bucket.feed.Replace(deny)
	moved("another list")
	if !set.DeniesWithoutStore() || set.Loaded() != nil || len(set.Policies()) != 2 {
		t.Errorf("denies %v, loaded %v, policies %d", set.DeniesWithoutStore(), set.Loaded(), len(set.Policies()))
	}
	bucket.feed.Fault(errors.New("x"))
	want := strings.NewReader(`
# HELP headgate_policies Policies known from sources that list theirs.
# TYPE headgate_policies gauge
headgate_policies 2
# HELP headgate_policy_errors_total Distinct faults met in a policy source, whose last good policies stayed in force.
# TYPE headgate_policy_errors_total counter
headgate_policy_errors_total{source="bucket"} 1
headgate_policy_errors_total{source="file"} 0
headgate_policy_errors_total{source="nvcf"} 0
`)
	if err := testutil.GatherAndCompare(reg, want, "headgate_policies", "headgate_policy_errors_total"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("metric names: %v, %v", problems, err)
	}
}

// Nodes that hold the same policies show the same number, in whatever order
// they came to know them.
func TestSet_fingerprint(t *testing.T) {
	t.Parallel()
	number := func(names ...string) float64 {
		return newSnapshot([]Source{&list{name: File}}, map[string][]*ratelimit.Policy{File: of(File, names...)}).fingerprint()
	}
	if number() != 0 || number("f/*") == 0 || number("f/*", "g/*") != number("g/*", "f/*") || number("f/*") == number("f/v") {
		t.Error("fingerprints do not tell lists apart by their contents")
	}
}

func TestSet_logsNoAccount(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	file := &list{name: File}
	newTestSet(t, DefaultConfig(), []Source{file}, WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	_, _, err := Parse([]byte("function: f\naccount: {acme: 1-S, overrides: {acme: x, acme: 1-S}, exclude: [acme, {}]}\n"))
	file.feed.Fault(fmt.Errorf("policies.yaml: %w", err))
	if !strings.Contains(log.String(), "account.overrides[1]") || strings.Contains(log.String(), "acme") {
		t.Errorf("log: %s", log.String())
	}
	faults := make([]*Fault, 200)
	for i := range faults {
		faults[i] = &Fault{Reason: "is wrong", Line: i}
	}
	log.Reset()
	file.feed.Fault(joinFaults(faults))
	if !strings.Contains(log.String(), "and 190 more") || log.Len() > 1000 {
		t.Errorf("log: %s", log.String())
	}
}

func TestNewSet_refuses(t *testing.T) {
	t.Parallel()
	if _, err := NewSet(DefaultConfig(), []Source{&list{name: File}, &list{name: File}}); err == nil {
		t.Error("a source given twice was taken")
	}
	_, err := NewSet(Config{Path: "x", Order: []string{"nats", Bucket, Bucket}, Poll: 1, Settle: -1}, nil)
	for _, want := range []string{"Order=nats", "Order=bucket: is given twice", "must name file", "Poll=1ns", "Settle=-1ns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not tell %q", err, want)
		}
	}
}

// A look-up costs the same with one policy and with ten thousand.
func BenchmarkFind(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		file := &list{name: File}
		set := newTestSet(b, DefaultConfig(), []Source{file})
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprintf("function-%d/*", i)
		}
		file.feed.Replace(of(File, names...))
		b.Run(fmt.Sprintf("policies=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if p, _ := set.Find(b.Context(), "function-0", "v1"); p == nil {
					b.Fatal("not found")
				}
			}
		})
	}
}
