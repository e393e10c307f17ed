package admin_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/ratelimit"
)

type limitAnswer struct {
	Rate             string
	Spent, Remaining int64
	NextUnit         *float64
	FullIn           float64
}

type counterAnswer struct {
	Key, Function, Version, Tier, Identity string
	InForce                                bool
	Limits                                 []limitAnswer
	Leases                                 []struct {
		Node  string
		Units int64
		Until float64
	}
	Silent []string
}

func (w *world) counter(t *testing.T, method, target, body string) counterAnswer {
	t.Helper()
	a := w.ask(t, method, target, body)
	var c counterAnswer
	if err := json.Unmarshal([]byte(a.body), &c); err != nil || a.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, target, a.status, a.body)
	}
	return c
}

func (w *world) counters(t *testing.T, query string) (keys []string, list []counterAnswer) {
	t.Helper()
	a := w.ask(t, http.MethodGet, "/v1/counters?"+query, "")
	var answer struct{ Counters []counterAnswer }
	if err := json.Unmarshal([]byte(a.body), &answer); err != nil || a.status != http.StatusOK {
		t.Fatalf("%s: %d %s", query, a.status, a.body)
	}
	for _, c := range answer.Counters {
		keys = append(keys, c.Key)
	}
	return keys, answer.Counters
}

func counterURL(key ratelimit.Key) string { return "/v1/counters/" + url.PathEscape(string(key)) }

func (w *world) put(t *testing.T, version, document string) {
	t.Helper()
	a := w.ask(t, http.MethodPut, "/v1/policies/resize/"+version, document)
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
}

func TestCounterStory(t *testing.T) {
	w := newWorld(t)
	w.put(t, "*", "{function: resize, account: {rates: '10-M,100-H', overrides: {vip: 50-H}, exclude: [probe]}}")
	key := w.key(t, ratelimit.Account, "*", "acme", "")

	fresh := w.counter(t, "GET", counterURL(key), "")
	if l := fresh.Limits; len(l) != 2 || l[0].Remaining != 10 || l[0].Spent != 0 || *l[0].NextUnit != 0 || l[0].FullIn != 0 {
		t.Fatalf("never used: %+v", fresh)
	}

	w.charge(t, key, "10-M,100-H", 10)
	w.leases = admin.Leases{
		Held: []admin.Lease{{Node: "node-1", Units: 3, Until: 80 * time.Millisecond}}, Silent: []string{"node-2"},
	}
	full := w.counter(t, "GET", counterURL(key), "")
	if full.Tier != "account" || full.Identity != "acme" || full.Function != "resize" || full.Version != "*" || !full.InForce {
		t.Fatalf("whose it is: %+v", full)
	}
	minute, hour := full.Limits[0], full.Limits[1]
	if minute.Rate != "10-M" || minute.Spent != 10 || minute.Remaining != 0 || *minute.NextUnit <= 59 || *minute.NextUnit > 62 {
		t.Fatalf("minute: %+v", minute)
	}
	if hour.Spent != 10 || hour.Remaining != 90 || *hour.NextUnit != 0 || hour.FullIn < 3600 {
		t.Fatalf("hour: %+v", hour)
	}
	if len(full.Leases) != 1 || full.Leases[0].Node != "node-1" || full.Leases[0].Units != 3 || full.Leases[0].Until != 0.08 {
		t.Fatalf("leases: %+v", full.Leases)
	}
	if len(full.Silent) != 1 || full.Silent[0] != "node-2" {
		t.Fatalf("silent: %q", full.Silent)
	}

	granted := w.counter(t, "POST", counterURL(key)+"/grant", `{"units": 4}`)
	if l := granted.Limits[0]; l.Remaining != 4 || l.Spent != 6 {
		t.Fatalf("granted: %+v", l)
	}
	// Lowered below what was spent: what was spent stays, nothing is negative.
	w.put(t, "*", "{function: resize, account: {rates: '2-M,100-H'}}")
	if l := w.counter(t, "GET", counterURL(key), "").Limits[0]; l.Remaining != 0 || l.Spent != 6 || l.Rate != "2-M" {
		t.Fatalf("lowered: %+v", l)
	}
	reset := w.counter(t, "POST", counterURL(key)+"/reset", "")
	if l := reset.Limits[0]; l.Remaining != 2 || l.Spent != 0 || len(reset.Leases) != 0 {
		t.Fatalf("reset: %+v", reset)
	}
}

// Whatever the tier, the counter that an invocation is counted under is found
// by what the invocation is.
func TestCountersByInvocation(t *testing.T) {
	w := newWorld(t)
	w.put(t, "*", "{function: resize, total: {rates: 1000-S}, subject: {rates: 5-S}, account: {rates: 10-H, overrides: {vip: 50-H}, exclude: [probe]}}")
	w.put(t, "v2", "{function: resize, version: v2, account: {rates: 20-H}}")
	subject := string(w.key(t, ratelimit.Subject, "*", "acme", "kim"))
	account := string(w.key(t, ratelimit.Account, "*", "acme", ""))
	total := string(w.key(t, ratelimit.Total, "*", "", ""))
	second := string(w.key(t, ratelimit.Account, "v2", "acme", ""))
	for query, want := range map[string][]string{
		"version=v1&account=acme&subject=kim":              {subject, account, total},
		"version=v1&account=acme":                          {account, total},
		"version=v1&account=acme&tier=account":             {account},
		"version=v1&account=acme&subject=kim&tier=subject": {subject},
		"version=v1&tier=total":                            {total},
		"version=v2&account=acme&subject=kim":              {second},
		"version=v1&account=probe":                         {total},
		"version=v1&account=probe&tier=account":            nil,
	} {
		got, list := w.counters(t, "function=resize&"+query)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
		for _, c := range list {
			if !c.InForce || len(c.Limits) != 1 {
				t.Errorf("%s: %+v", query, c)
			}
		}
	}
	if _, list := w.counters(t, "function=resize&version=v1&account=vip&tier=account"); list[0].Limits[0].Rate != "50-H" {
		t.Errorf("override: %+v", list)
	}
	if got, _ := w.counters(t, "function=unknown&version=v1&account=acme"); len(got) != 0 {
		t.Errorf("no policy: %v", got)
	}
}

func TestCountersByPart(t *testing.T) {
	w := newWorld(t)
	w.put(t, "*", "{function: resize, subject: {rates: 5-H}, account: {rates: 10-H}}")
	keys := map[string]ratelimit.Key{
		"acme":   w.key(t, ratelimit.Account, "*", "acme", ""),
		"acme2":  w.key(t, ratelimit.Account, "v2", "acme", ""),
		"other":  w.key(t, ratelimit.Account, "*", "other.co", ""),
		"kim":    w.key(t, ratelimit.Subject, "*", "acme", "kim"),
		"others": w.key(t, ratelimit.Subject, "*", "other.co", "kim"),
	}
	for _, key := range keys {
		w.charge(t, key, "10-H", 1)
	}
	for query, want := range map[string]string{
		"":                            "acme acme2 kim other others",
		"tier=account":                "acme acme2 other",
		"tier=subject":                "kim others",
		"account=acme":                "acme acme2",
		"account=other.co":            "other",
		"account=acme&subject=kim":    "kim",
		"version=v2":                  "acme2",
		"version=*&tier=subject":      "kim others",
		"account=nobody":              "",
		"account=other.co&subject=jo": "",
	} {
		got, _ := w.counters(t, "function=resize&"+query)
		var found []string
		for _, name := range []string{"acme", "acme2", "kim", "other", "others"} {
			for _, key := range got {
				if key == string(keys[name]) {
					found = append(found, name)
				}
			}
		}
		if strings.Join(found, " ") != want || len(found) != len(got) {
			t.Errorf("%s: %v of %v, want %s", query, found, got, want)
		}
	}
	elsewhere, _ := w.keys.Key(ratelimit.Account, "crop", "*", "acme", "")
	w.charge(t, elsewhere, "10-H", 1)
	if got, _ := w.counters(t, ""); len(got) != len(keys)+1 {
		t.Errorf("all functions: %v", got)
	}
	if got, _ := w.counters(t, "account=acme"); len(got) != 3 {
		t.Errorf("an account of all functions: %v", got)
	}
	// A counter of a policy that is gone: no limits, and it can be reset.
	stale := w.counter(t, "GET", counterURL(keys["acme2"]), "")
	if stale.InForce || len(stale.Limits) != 0 {
		t.Errorf("of no policy: %+v", stale)
	}
	w.counter(t, "POST", counterURL(keys["acme2"])+"/reset", "")
	if state := w.store.State(keys["acme2"]); !state.Empty() {
		t.Errorf("reset left %+v", state)
	}
	var limited struct {
		Counters []struct{}
		More     bool
	}
	a := w.ask(t, http.MethodGet, "/v1/counters?function=resize&limit=2", "")
	if err := json.Unmarshal([]byte(a.body), &limited); err != nil || len(limited.Counters) != 2 || !limited.More {
		t.Errorf("limit: %s", a.body)
	}
}

func TestCounterRefusals(t *testing.T) {
	w := newWorld(t)
	w.put(t, "*", "{function: resize, account: {rates: 10-H}}")
	known := counterURL(w.key(t, ratelimit.Account, "*", "acme", ""))
	unknown := counterURL(w.key(t, ratelimit.Total, "*", "", ""))
	for _, c := range []struct {
		name, method, target, body string
		status                     int
		want                       string
	}{
		{"tier", "GET", "/v1/counters?function=f&tier=user", "", 400, `"field":"tier"`},
		{"limit", "GET", "/v1/counters?function=f&limit=0", "", 400, `"field":"limit"`},
		{"subject alone", "GET", "/v1/counters?function=f&subject=kim", "", 400, `"field":"account"`},
		{"account of the total", "GET", "/v1/counters?function=f&tier=total&account=a", "", 400, `"field":"account"`},
		{"subject of the account", "GET", "/v1/counters?function=f&tier=account&account=a&subject=s", "", 400, `"field":"subject"`},
		{"subjects of an account", "GET", "/v1/counters?function=f&tier=subject&account=a", "", 400, `"field":"subject"`},
		{"no key", "GET", "/v1/counters/acme", "", 400, `"field":"key"`},
		{"no such counter", "GET", unknown, "", 404, "not_found"},
		{"nothing to reset", "POST", unknown + "/reset", "", 404, "not_found"},
		{"nothing to grant to", "POST", unknown + "/grant", `{"units":1}`, 404, "not_found"},
		{"no units", "POST", known + "/grant", `{}`, 400, `"field":"units"`},
		{"none", "POST", known + "/grant", `{"units":0}`, 400, `"field":"units"`},
		{"too many", "POST", known + "/grant", `{"units":9007199254740993}`, 400, `"field":"units"`},
		{"a part", "POST", known + "/grant", `{"units":1.5}`, 400, `"field":"units"`},
		{"unknown field", "POST", known + "/grant", `{"units":1,"for":"acme"}`, 400, `"field":"for"`},
		{"no JSON", "POST", known + "/grant", `units=1`, 400, `"code":"invalid"`},
		{"too large", "POST", known + "/grant", strings.Repeat(" ", 5000), 413, `"code":"too_large"`},
		{"wrong method", "GET", known + "/reset", "", 405, `"code":"method_not_allowed"`},
		{"no path", "GET", "/v1/counter", "", 404, "openapi.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.ask(t, c.method, c.target, c.body)
			if a.status != c.status || !strings.Contains(a.body, c.want) {
				t.Fatalf("%d %s, want %d with %s", a.status, a.body, c.status, c.want)
			}
			if c.status == http.StatusMethodNotAllowed && a.header.Get("Allow") != "POST" {
				t.Fatalf("Allow: %q", a.header.Get("Allow"))
			}
		})
	}
	w.failure = ratelimit.ErrUnavailable
	for _, target := range []string{known, "/v1/counters?function=f"} {
		if a := w.ask(t, http.MethodGet, target, ""); a.status != http.StatusServiceUnavailable {
			t.Errorf("store away: %d %s", a.status, a.body)
		}
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t)
	if a := w.ask(t, http.MethodGet, "/v1/status", ""); a.status != http.StatusOK || !strings.Contains(a.body, `"counters":null,"nodes":[],"buckets":[]`) {
		t.Fatalf("knows nothing: %d %s", a.status, a.body)
	}
	n := int64(7)
	w.status = admin.Status{
		Node: "node-1", Phase: "ready", Version: "1.0", Ready: true, Counters: &n,
		Nodes:   []admin.Node{{Name: "node-1", Phase: "ready", Uptime: 12.5, Offset: -0.001}},
		Buckets: []admin.Bucket{{Name: "headgate_counters", Leader: "node-1", Replicas: []admin.Replica{{Name: "node-1", Current: true}}}, {Name: "x"}},
	}
	a := w.ask(t, http.MethodGet, "/v1/status", "")
	for _, want := range []string{`"counters":7`, `"offset":-0.001`, `"replicas":[]`, `"current":true`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("%s is not in %s", want, a.body)
		}
	}
}

// A page of another site that a browser shows cannot operate a node.
func TestOtherSitesAreRefused(t *testing.T) {
	w := newWorld(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, resizeURL, nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	rec := httptest.NewRecorder()
	w.mux.ServeHTTP(rec, r)
	if rec.Code != http.StatusForbidden {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
}

func TestRegisterNamesWhatIsMissing(t *testing.T) {
	err := admin.Register(http.NewServeMux(), admin.Parts{}, nil)
	for _, part := range []string{"Policies", "View", "Counters", "Operator", "Keys", "Clock", "Status"} {
		if err == nil || !strings.Contains(err.Error(), "Parts."+part) {
			t.Errorf("%s is not in %v", part, err)
		}
	}
}

// Accounts are told to operators, never to the log; subjects to nobody.
func TestAdminKeepsAccountsOutOfTheLog(t *testing.T) {
	w := newWorld(t)
	w.put(t, "*", "{function: resize, subject: {rates: 5-H}, account: {rates: 10-H}}")
	var log bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.mux = http.NewServeMux()
	if err := admin.Register(w.mux, w.parts(), logger); err != nil {
		t.Fatal(err)
	}
	a := w.ask(t, http.MethodGet, "/v1/counters?function=resize&version=v1&account=zqacme&subject=zqkim", "")
	if strings.Contains(a.body, "zqkim") || !strings.Contains(a.body, "zqacme") {
		t.Errorf("answer: %s", a.body)
	}
	w.failure = fmt.Errorf("counter of zqacme: %w", errors.New("zqacme is broken"))
	a = w.ask(t, http.MethodGet, "/v1/counters?function=resize&version=v1&account=zqacme&subject=zqkim", "")
	if a.status != http.StatusInternalServerError || strings.Contains(a.body, "zq") {
		t.Errorf("failure: %d %s", a.status, a.body)
	}
	if strings.Contains(log.String(), "zq") || !strings.Contains(log.String(), "admin request failed") {
		t.Errorf("log: %s", log.String())
	}
}
