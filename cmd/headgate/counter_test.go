package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/headgate-io/headgate/cmd/headgate/internal/client"
	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

func TestCounterCommands(t *testing.T) {
	t.Parallel()
	w, environ := newWorld(t)
	rate := counter.Rate{Units: 10, Period: time.Hour}
	told{args: "policy apply -f -", stdin: "function: resize\naccount: {rates: 10-H}\n", out: []string{"created"}}.check(t, environ)
	key := string(w.charge("resize", "acme", 10, rate))
	w.charge("resize", "other", 3, rate)
	w.charge("gone", "acme", 1, rate)
	w.lease([]string{"n3"}, admin.Lease{Node: "n2", Units: 4, Until: 50 * time.Millisecond})

	const acme = " --function resize --version v1 --account acme"
	for _, step := range []told{
		{args: "counter ls --function resize", out: []string{
			"FUNCTION  VERSION  TIER     IDENTITY  RATE  SPENT  REMAINING  NEXT UNIT",
			"*        account  acme      10-H  10     0", "*        account  other     10-H  3      7          now", key,
		}},
		{args: "counter ls --function resize --account other --limit 1", out: []string{"other"}},
		{args: "counter ls --function resize --limit 1", out: []string{"acme"}, errs: []string{"warning: only the first 1 are shown"}},
		{args: "counter ls --function gone", out: []string{"no policy in force"}},
		{args: "counter ls", out: []string{"resize    *        account  acme", "gone      *        account  acme"}},
		{args: "counter get --function resize --account acme", out: []string{"10-H  10     0"}},
		{args: "counter get --function resize --account nobody", out: []string{"nobody    10-H  0      10"}},
		{args: "counter get --function none --account nobody", code: 2, errs: []string{"name the --version"}},
		{args: "counter get" + acme, out: []string{"10-H  10     0", "LEASED TO  UNITS  ENDS IN", "n2         4      50ms", "n3 may hold leases and did not answer"}},
		{args: "counter get " + key, out: []string{"10-H  10     0"}},
		{args: "counter get --function resize", code: 2, errs: []string{"name a counter by its key"}},
		{args: "counter get " + key + acme, code: 2, errs: []string{"name a counter by its key"}},
		{args: "counter get --function none --version v --account acme", code: 2, errs: []string{"no limit counts such invocations"}},
		{args: "counter get not-a-key", code: 2, errs: []string{"counter not-a-key: key: is not a counter's"}},
		{args: "counter grant" + acme, code: 2, errs: []string{`required flag(s) "units" not set`}},
		{args: "counter grant --units 0" + acme, code: 2, errs: []string{"units: must be a whole number, 1 to 2^53"}},
		{args: "policy apply p.yaml", code: 2, errs: []string{"files are named with -f: -f p.yaml"}},
		{args: "counter grant --units 5" + acme, out: []string{"10-H  5      5          now"}},
		{args: "counter reset" + acme, out: []string{"10-H  0      10         now"}},
		{args: "__complete counter get --function r", out: []string{"resize\n"}, errs: []string{"Directive"}},
	} {
		step.check(t, environ)
	}
	var details []client.CounterDetail
	out := told{args: "counter get -o json" + acme}.check(t, environ)
	if err := json.Unmarshal([]byte(out), &details); err != nil || len(details) != 1 || details[0].Limits[0].Remaining != 10 {
		t.Errorf("as JSON: %v\n%s", err, out)
	}
}

func TestStatusCommand(t *testing.T) {
	t.Parallel()
	_, environ := newWorld(t)
	told{args: "status", out: []string{
		"node       n1", "ready      yes", "degraded   no", "counters   12",
		"NODE  PHASE           VERSION  UPTIME  CLOCK OFFSET",
		"n1    ready           v1.2.3   1h0m0s  1.2ms",
		"n2    draining        v1.2.2   13s     -500ms",
		"n3    silent for 13s  v1.2.2",
		"BUCKET             LEADER  RECORDS  BYTES  REPLICA  STATE",
		"headgate_counters  n1      12       1024   n1       current",
		"n2       behind by 3", "n3       offline",
	}}.check(t, environ)
	told{args: "status -o yaml", out: []string{"node: n1", "counters: 12"}}.check(t, environ)
	told{args: "status --server 127.0.0.1:1", code: 2, errs: []string{"headgate: ask 127.0.0.1:1: ", "refused"}}.check(t, environ)
}

// What is forgiven or granted is the account's, or the caller's, and never that of
// the whole function unless it is named.
func TestCounterChangesOneTier(t *testing.T) {
	t.Parallel()
	w, environ := newWorld(t)
	told{args: "policy apply -f -", stdin: "function: resize\ntotal: {rates: 100-H}\naccount: {rates: 10-H}\nsubject: {rates: 5-H}\n", out: []string{"created"}}.check(t, environ)
	w.charge("resize", "acme", 10, counter.Rate{Units: 10, Period: time.Hour})

	const acme = " --function resize --version v1 --account acme"
	for args, tier := range map[string]string{
		"counter reset -o json" + acme:                                                "account",
		"counter reset -o json --subject jane" + acme:                                 "subject",
		"counter reset -o json --tier account" + acme:                                 "account",
		"counter grant -o json --units 1 --function resize --version v1 --tier total": "total",
	} {
		var details []client.CounterDetail
		out := told{args: args}.check(t, environ)
		if err := json.Unmarshal([]byte(out), &details); err != nil || len(details) != 1 || details[0].Tier != tier {
			t.Errorf("%s: %v, want the tier %s alone\n%s", args, err, tier, out)
		}
	}
	var details []client.CounterDetail
	out := told{args: "counter get -o json --subject jane" + acme}.check(t, environ)
	if err := json.Unmarshal([]byte(out), &details); err != nil || len(details) != 3 {
		t.Errorf("get: %v, want all three tiers\n%s", err, out)
	}
}
