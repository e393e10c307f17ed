package main

import (
	"encoding/json"
	"testing"

	"github.com/headgate-io/headgate/cmd/headgate/internal/client"
)

// The bench asks a real node over either wire, and what it tells adds up with
// what the node's counters say.
func TestBench(t *testing.T) {
	t.Parallel()
	n := startNode(t, "--data-dir", t.TempDir(), "--policies", policyFile(t, "function: bench\naccount: {rates: 30-H}\n"))
	environ := n.adminEnv()
	var admitted int64
	for _, wire := range []string{"http", "grpc --server " + n.grpc} {
		var r report
		out := told{args: "bench -o json -c 4 --rate 200 --for 500ms --accounts 4 --wire " + wire}.check(t, environ)
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%v in %s", err, out)
		}
		if r.Calls == 0 || r.Calls > 100 || r.Failed != 0 || r.Allowed+r.Denied != r.Calls || r.Rate <= 0 {
			t.Errorf("%+v", r)
		}
		if l := r.Latency; l.P50 <= 0 || l.P50 > l.P90 || l.P90 > l.P99 || l.P99 > l.P999 || l.P999 > l.Max {
			t.Errorf("latency %+v", l)
		}
		admitted += r.Allowed
	}
	n.settled()
	var counters []client.Counter
	out := told{args: "counter ls -o json --function bench"}.check(t, environ)
	if err := json.Unmarshal([]byte(out), &counters); err != nil || len(counters) != 4 {
		t.Fatalf("%v in %s", err, out)
	}
	var spent int64
	for _, c := range counters {
		spent += c.Limits[0].Spent
	}
	// The first call of each run is not part of what was measured.
	if first := spent - admitted; first < 0 || first > 2 || spent > 120 {
		t.Errorf("%d told as admitted, %d spent of 4 accounts with 30 each", admitted, spent)
	}
	told{args: "bench --for 10ms", out: []string{"allowed   ", "denied    ", "failed    0", "LATENCY  P50"}}.check(t, environ)
}

func TestBenchRefusals(t *testing.T) {
	t.Parallel()
	for _, step := range []told{
		{args: "bench --wire telnet", code: 2, errs: []string{`--wire "telnet": must be http or grpc`}},
		{args: "bench -c 0", code: 2, errs: []string{"concurrency 0: must be 1 to 10000"}},
		{args: "bench --server 127.0.0.1:1", code: 2, errs: []string{"ask 127.0.0.1:1: ", "refused"}},
		{args: "bench --wire grpc --server 127.0.0.1:1", code: 2, errs: []string{"ask 127.0.0.1:1: ", "refused"}},
	} {
		step.check(t, nil)
	}
}

func TestLatencyForPeople(t *testing.T) {
	t.Parallel()
	for s, want := range map[float64]string{
		0: "0s", 0.000_000_5: "500ns", 0.000_123_456: "123µs", 0.001_234_5: "1.23ms", 0.012_345: "12.3ms", 1.234_5: "1.23s", 0.009_999: "10ms",
	} {
		if got := latency(s); got != want {
			t.Errorf("%g s: %s, want %s", s, got, want)
		}
	}
}
