package replay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

func finder(t *testing.T, text string) ratelimit.Finder {
	t.Helper()
	policies, _, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return policy.NewFixed(policies)
}

func run(t *testing.T, log, proposed, inForce string) *Result {
	t.Helper()
	res, err := Run(t.Context(), Read(strings.NewReader(log)), finder(t, proposed), finder(t, inForce), DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// An afternoon of three callers: who is denied, when, by which rate, and what
// the policies in force say to it.
func TestRun_story(t *testing.T) {
	t.Parallel()
	const log = `{"time":"2030-01-01T12:00:00Z","function":"f","version":"v1","account":"acme","subject":"ann"}
{"time":"2030-01-01T12:00:00.1Z","function":"f","version":"v2","account":"acme","subject":"ann"}
{"time":"2030-01-01T12:00:00.2Z","function":"f","version":"v1","account":"acme","subject":"ben"}
{"time":"2030-01-01T12:00:00.3Z","function":"f","version":"v1","account":"acme","subject":"cas"}

{"time":"2030-01-01T12:00:00.3Z","function":"f","version":"v1","account":"acme","subject":"dan","cost":4}
{"time":"2030-01-01T12:00:02Z","function":"f","version":"v1","account":"acme","subject":"eve"}
{"time":"2030-01-01T12:00:02Z","function":"f","version":"v1"}
{"time":1893499203.5,"function":"other","version":"v1","account":"acme"}
{"time":1893499200,"function":"other","version":"v1","account":"acme"}
`
	res := run(t, log, "function: f\naccount: {rates: 2-S}\nsubject: {rates: 1-M}\n", "function: f\naccount: {rates: 3-S}\n")
	var got strings.Builder
	for _, d := range res.Denials {
		fmt.Fprintf(&got, "%d %s by %s %s, again after %s, in force: %v\n", d.Line, d.Time.UTC().Format("05.0"),
			d.Proposed.Tier, d.Proposed.Rate, d.Proposed.RetryAfter.Round(100*time.Millisecond), d.InForce.Allowed())
	}
	const want = `2 00.1 by subject 1-M, again after 1m0.9s, in force: true
4 00.3 by account 2-S, again after 700ms, in force: false
6 00.3 by subject 1-M, again after 0s, in force: false
8 02.0 by none 0/0s, again after 0s, in force: false
`
	if got.String() != want {
		t.Errorf("denials\n%s\nwant\n%s", got.String(), want)
	}
	if res.Invocations != 9 || res.OutOfOrder != 1 || res.NewlyDenied != 1 || res.NewlyAdmitted != 0 {
		t.Errorf("%+v", res)
	}
	if want := (Totals{Admitted: 5, Denied: 4, Impossible: 1, Refused: 1, Unlimited: 2}); res.Proposed != want {
		t.Errorf("proposed %+v, want %+v", res.Proposed, want)
	}
	if res.To.Sub(res.From) != 3500*time.Millisecond {
		t.Errorf("from %s to %s", res.From, res.To)
	}
}

const everyKind = `
- function: f
  total: {rates: "40/10s"}
  account: {rates: "9-S,20/10s", overrides: {b: 5-S}, exclude: [c]}
  subject: {rates: "4-S"}
  consistency: exact
- {function: f, version: v2, account: {rates: [{units: 6, period: 2s, algorithm: fixed}]}, consistency: exact}
- {function: g, total: {rates: [{units: 5, period: 2s, algorithm: token-bucket, burst: 12}]}, subject: {rates: 3-S}, consistency: exact, enforce: false}
- {function: "*", account: {rates: 7-S}, consistency: exact}
`

// What a replay says is what the limiter says: the same invocations at the same
// instants, decided by a live limiter over a store in memory.
func TestRun_asTheLimiter(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 1))
		clock := storetest.NewManualClock(counter.InstantOf(time.Unix(2e9, 0)))
		keys := ratelimit.NewKeyring()
		keys.SetSecret([]byte("0123456789abcdef"))
		cfg := ratelimit.DefaultConfig()
		cfg.Node, cfg.Attempt = "node", time.Second // of this machine's time, which may be busy
		live, err := ratelimit.New(storetest.NewMemory(clock), clock, finder(t, everyKind), keys, cfg)
		if err != nil {
			t.Fatal(err)
		}
		engine := newEngine(finder(t, everyKind))
		pick := func(of ...string) string { return of[rng.IntN(len(of))] }
		outcomes := map[ratelimit.Outcome]int{}
		for i := range 3000 {
			clock.Advance(time.Duration(rng.Int64N(int64(100 * time.Millisecond))))
			inv := ratelimit.Invocation{
				Account: pick("a", "b", "c"), Function: pick("f", "f", "g", "h"), Version: pick("v1", "v2"),
				Subject: pick("", "s", "t"), Cost: 1 + rng.Int64N(3)*rng.Int64N(3)*rng.Int64N(3),
			}
			want, err := live.Decide(t.Context(), inv)
			if err != nil {
				t.Fatal(err)
			}
			got := engine.decide(t.Context(), inv, clock.Now())
			outcomes[got.Outcome]++
			if got.Outcome != want.Outcome || got.Tier != want.Tier || got.Rate != want.Rate || got.RetryAfter != want.RetryAfter {
				t.Fatalf("seed %d, invocation %d %+v:\nreplay  %v %v %v %v\nlimiter %v %v %v %v", seed, i, inv,
					got.Outcome, got.Tier, got.Rate, got.RetryAfter, want.Outcome, want.Tier, want.Rate, want.RetryAfter)
			}
		}
		if outcomes[ratelimit.Admitted] < 500 || outcomes[ratelimit.Denied] < 500 || outcomes[ratelimit.Impossible] < 10 {
			t.Errorf("seed %d tried too little: %v", seed, outcomes)
		}
		if err := live.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestRun_unenforced(t *testing.T) {
	t.Parallel()
	line := `{"time":1893499200,"function":"f","version":"v","account":"a"}` + "\n"
	res := run(t, strings.Repeat(line, 5), "function: f\ntotal: {rates: 2-S}\nenforce: false\n", "function: f\ntotal: {rates: 1-S}\n")
	if want := (Totals{Admitted: 5, Unenforced: 3}); res.Proposed != want || res.NewlyAdmitted != 4 {
		t.Errorf("%+v", res)
	}
	if len(res.Groups) != 1 || res.Groups[0].Enforced || res.Groups[0].Denied != 3 || res.Groups[0].New != 0 {
		t.Errorf("groups %+v", res.Groups)
	}
}

// The bounds bound what is kept, never what is counted; a look charges nothing.
func TestRun_bounds(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	for i := range 100 {
		fmt.Fprintf(&log, `{"time":%d,"function":"f","account":"a%d","cost":%d}`+"\n", 1893499200+i, i%10, i%2)
	}
	policies := finder(t, "function: f\naccount: {rates: 1-H}\n")
	res, err := Run(t.Context(), Read(strings.NewReader(log.String())), policies, policies, Config{MaxDenials: 2, MaxGroups: 3})
	if err != nil {
		t.Fatal(err)
	}
	// The five accounts that charge do so once each; the others only look.
	if len(res.Denials) != 2 || len(res.Groups) != 3 || res.Proposed.Denied != 45 || res.Proposed.Admitted != 55 || res.NewlyDenied != 0 {
		t.Errorf("%d denials, %d groups, %+v", len(res.Denials), len(res.Groups), res.Proposed)
	}
}

// Counters in which nothing matters any more are forgotten, and only those.
func TestEngine_sweep(t *testing.T) {
	t.Parallel()
	e := newEngine(finder(t, "function: f\nsubject: {rates: [2-S, {units: 1, period: 1s, algorithm: token-bucket, burst: 10}]}\n"))
	now := counter.InstantOf(time.Unix(2e9, 0))
	for i := range 100 {
		e.decide(t.Context(), ratelimit.Invocation{Account: "a", Function: "f", Subject: fmt.Sprint(i), Cost: 1 + int64(i%2)}, now)
	}
	for _, tt := range []struct {
		after time.Duration
		want  int
	}{{0, 100}, {1500 * time.Millisecond, 50}, {3 * time.Second, 0}} {
		if e.sweep(now.Add(tt.after)); len(e.counters) != tt.want {
			t.Errorf("after %s: %d counters, want %d", tt.after, len(e.counters), tt.want)
		}
	}
}

func TestRead_faults(t *testing.T) {
	t.Parallel()
	const log = `{"time":"2030-01-01T12:00:00Z","function":"f","other":{"x":1}}
not json
{"function":"f"}
{"time":"yesterday","function":"f"}
{"time":-1,"function":"f"}
{"time":1e11,"function":"f"}
{"time":1,"subject":"private"}
{"time":1,"function":"f","cost":-1}
{"time":1,"function":"f","cost":1.5}
{"time":1,"function":7}
[]
`
	want := []string{
		"line 2: is not a JSON object",
		"line 3: time: is required",
		"line 4: time: must be RFC 3339, or seconds since 1970",
		"line 5: time: must be RFC 3339, or seconds since 1970",
		"line 6: time: must be RFC 3339, or seconds since 1970",
		"line 7: function: is required",
		"line 8: cost: must be from 0 to 9007199254740992",
		"line 9: cost: must not be a number 1.5",
		"line 10: function: must not be a number",
		"line 11: is not a JSON object",
		"line 12: is longer than 65536 bytes",
	}
	var got []string
	read := 0
	for record, err := range Read(strings.NewReader(log + strings.Repeat("x", MaxLineBytes+1))) {
		if err == nil {
			read++
			if record.Cost != 1 || record.Line != 1 {
				t.Errorf("record %+v", record)
			}
			continue
		}
		if !errors.Is(err, ErrRecord) {
			t.Errorf("%v is no record error", err)
		}
		got = append(got, err.Error())
	}
	if !slices.Equal(got, want) || read != 1 {
		t.Errorf("read %d, faults\n%s\nwant\n%s", read, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	none := finder(t, "")
	if _, err := Run(t.Context(), Read(strings.NewReader(log)), none, none, DefaultConfig()); err == nil || err.Error() != want[0] {
		t.Errorf("a replay of it: %v", err)
	}
}

func BenchmarkRun(b *testing.B) {
	policies, _, err := policy.Parse([]byte(everyKind))
	if err != nil {
		b.Fatal(err)
	}
	e := newEngine(policy.NewFixed(policies))
	now := counter.InstantOf(time.Unix(2e9, 0))
	inv := ratelimit.Invocation{Account: "a", Function: "f", Version: "v1", Subject: "s", Cost: 1}
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Millisecond)
		e.decide(b.Context(), inv, now)
	}
}
