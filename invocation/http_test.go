package invocation_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/ratelimit"
)

const acmeBody = `{"account":"acme","function":"f","version":"v","subject":"kim"}`

// ask sends one request to the handler of a gate.
func ask(t *testing.T, g *invocation.Gate, r *http.Request) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	invocation.NewHandler(g, nil).ServeHTTP(w, r)
	return w.Result()
}

func post(t *testing.T, g *invocation.Gate, body string) *http.Response {
	t.Helper()
	return ask(t, g, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/check", strings.NewReader(body)))
}

func text(t *testing.T, resp *http.Response) string {
	t.Helper()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func problem(t *testing.T, resp *http.Response) invocation.Problem {
	t.Helper()
	var body struct{ Error invocation.Problem }
	if err := json.Unmarshal([]byte(text(t, resp)), &body); err != nil {
		t.Fatal(err)
	}
	return body.Error
}

func TestCheckReadsTheBody(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       ratelimit.Invocation
	}{
		{"all", `{"account":"a","function":"f","version":"v","subject":"s","cost":3}`,
			ratelimit.Invocation{Account: "a", Function: "f", Version: "v", Subject: "s", Cost: 3}},
		{"cost is 1 unless said", `{"function":"f"}`, ratelimit.Invocation{Function: "f", Cost: 1}},
		{"cost 0 looks", `{"function":"f","cost":0}`, ratelimit.Invocation{Function: "f"}},
		{"null is absent", `{"function":"f","subject":null,"cost":null}`, ratelimit.Invocation{Function: "f", Cost: 1}},
		{"escapes and space", " {\n\"function\" : \"\\u0066\\ud83d\\ude00\" }\n", ratelimit.Invocation{Function: "f😀", Cost: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := &fakeDecider{}
			resp := post(t, openGate(t, fake), c.body)
			if got, _ := fake.last(); resp.StatusCode != http.StatusOK || got != c.want {
				t.Fatalf("%d %s: decided %+v, want %+v", resp.StatusCode, text(t, resp), got, c.want)
			}
		})
	}
}

func TestCheckRefusesTheBody(t *testing.T) {
	for _, c := range []struct {
		name, body string
		status     int
		field      string
	}{
		{"empty", ``, 400, ""},
		{"no object", `["acme"]`, 400, ""},
		{"broken off", `{"function":"f"`, 400, ""},
		{"trailing comma", `{"function":"f",}`, 400, ""},
		{"two objects", `{"function":"f"}{}`, 400, ""},
		{"something after it", `{"function":"f"} x`, 400, ""},
		{"unknown field", `{"function":"f","acount":"acme"}`, 400, "acount"},
		{"name in another case", `{"Function":"f"}`, 400, "Function"},
		{"given twice", `{"function":"f","function":"g"}`, 400, "function"},
		{"no function", `{"account":"a"}`, 400, "function"},
		{"number for a string", `{"function":"f","account":5}`, 400, "account"},
		{"object for a string", `{"function":{}}`, 400, "function"},
		{"string for a number", `{"function":"f","cost":"1"}`, 400, "cost"},
		{"fraction", `{"function":"f","cost":1.5}`, 400, "cost"},
		{"negative", `{"function":"f","cost":-1}`, 400, "cost"},
		{"absurd", `{"function":"f","cost":9007199254740993}`, 400, "cost"},
		{"beyond 64 bits", `{"function":"f","cost":99999999999999999999}`, 400, "cost"},
		{"control character", `{"function":"f","subject":"a\u0000b"}`, 400, "subject"},
		{"not UTF-8", "{\"function\":\"f\",\"subject\":\"a\xff\"}", 400, "subject"},
		{"half a surrogate pair", `{"function":"f","subject":"a\ud83d"}`, 400, "subject"},
		{"257 bytes", `{"function":"f","version":"` + strings.Repeat("x", 257) + `"}`, 400, "version"},
		{"over 64 KiB", `{"function":"` + strings.Repeat("x", 65<<10) + `"}`, 413, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := &fakeDecider{}
			resp := post(t, openGate(t, fake), c.body)
			got := problem(t, resp)
			if resp.StatusCode != c.status || got.Field != c.field {
				t.Fatalf("%d %+v, want %d with field %q", resp.StatusCode, got, c.status, c.field)
			}
			if c.field != "" && !strings.HasPrefix(got.Message, c.field+": ") {
				t.Fatalf("message %q does not name the field", got.Message)
			}
			if inv, asked := fake.last(); asked {
				t.Fatalf("decided %+v all the same", inv)
			}
		})
	}
}

func TestHTTPStatuses(t *testing.T) {
	shutGate, err := invocation.NewGate(&fakeDecider{})
	if err != nil {
		t.Fatal(err)
	}
	closedGate := openGate(t, &fakeDecider{})
	if err := closedGate.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	panics := &fakeDecider{answer: func(context.Context, ratelimit.Invocation) (ratelimit.Decision, error) { panic("acme") }}
	for _, c := range []struct {
		name         string
		gate         *invocation.Gate
		method, path string
		status       int
		code         string
		header, want string
	}{
		{"not ready", shutGate, "POST", "/v1/check", 503, "not_ready", "Retry-After", "1"},
		{"leaving", closedGate, "POST", "/v1/check", 503, "not_ready", "Retry-After", "1"},
		{"stopped", openGate(t, fails(ratelimit.ErrStopped)), "POST", "/v1/check", 503, "not_ready", "Retry-After", "1"},
		{"late", openGate(t, fails(context.DeadlineExceeded)), "POST", "/v1/check", 504, "timeout", "", ""},
		{"a fault of ours", openGate(t, fails(errors.New("acme"))), "POST", "/v1/check", 500, "internal", "", ""},
		{"a panic of ours", openGate(t, panics), "POST", "/v1/check", 500, "internal", "", ""},
		{"wrong method", openGate(t, &fakeDecider{}), "GET", "/v1/check", 405, "method_not_allowed", "Allow", "POST"},
		{"no such path", openGate(t, &fakeDecider{}), "POST", "/v1/chek", 404, "not_found", "", ""},
		{"root", openGate(t, &fakeDecider{}), "GET", "/", 404, "not_found", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			resp := ask(t, c.gate, httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(acmeBody)))
			got := problem(t, resp)
			if resp.StatusCode != c.status || got.Code != c.code {
				t.Fatalf("%d %+v, want %d %s", resp.StatusCode, got, c.status, c.code)
			}
			if strings.Contains(got.Message, "acme") {
				t.Fatalf("the message gives the account away: %s", got.Message)
			}
			if c.header != "" && resp.Header.Get(c.header) != c.want {
				t.Fatalf("%s: %q, want %q", c.header, resp.Header.Get(c.header), c.want)
			}
		})
	}
}

func TestAuthorize(t *testing.T) {
	hourly := rate(t, "10-H")
	denied := ratelimit.Decision{Tier: ratelimit.Account, Rate: hourly, RetryAfter: 90 * time.Second}
	full := http.Header{
		"X-Headgate-Account": {"acme"}, "X-Headgate-Function": {"f"}, "X-Headgate-Version": {"v"},
		"X-Headgate-Subject": {"kim"}, "X-Headgate-Cost": {"2"},
	}
	with := func(name string, values ...string) http.Header {
		h := full.Clone()
		h[name] = values
		return h
	}
	for _, c := range []struct {
		name         string
		decider      *fakeDecider
		method, path string
		header       http.Header
		status       int
		field        string
	}{
		{"admitted", &fakeDecider{}, "GET", "/v1/authorize", full, 200, ""},
		{"any method, a path behind it", &fakeDecider{}, "DELETE", "/v1/authorize/kim/home", full, 200, ""},
		{"denied", decides(denied), "GET", "/v1/authorize", full, 429, ""},
		{"no function", &fakeDecider{}, "GET", "/v1/authorize", with("X-Headgate-Function"), 400, "X-Headgate-Function"},
		{"no number", &fakeDecider{}, "GET", "/v1/authorize", with("X-Headgate-Cost", "two"), 400, "X-Headgate-Cost"},
		{"smuggled", &fakeDecider{}, "GET", "/v1/authorize", with("X-Headgate-Account", "a", "b"), 400, "X-Headgate-Account"},
		{"not UTF-8", &fakeDecider{}, "GET", "/v1/authorize", with("X-Headgate-Subject", "k\xe4"), 400, "X-Headgate-Subject"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, nil)
			r.Header = c.header
			resp := ask(t, openGate(t, c.decider), r)
			if resp.StatusCode != c.status {
				t.Fatalf("%d %s, want %d", resp.StatusCode, text(t, resp), c.status)
			}
			if c.status == http.StatusBadRequest {
				if got := problem(t, resp); got.Field != c.field {
					t.Fatalf("%+v, want field %s", got, c.field)
				}
				return
			}
			want := ratelimit.Invocation{Account: "acme", Function: "f", Version: "v", Subject: "kim", Cost: 2}
			if got, _ := c.decider.last(); got != want {
				t.Fatalf("decided %+v, want %+v", got, want)
			}
			if after := resp.Header.Get("Retry-After"); (after == "90") != (c.status == 429) {
				t.Fatalf("Retry-After %q with %d", after, c.status)
			}
		})
	}
}

func TestMiddleware(t *testing.T) {
	hourly := rate(t, "10-H")
	standing := ratelimit.Standing{Tier: ratelimit.Account, Rate: hourly, Remaining: 6, Reset: time.Minute}
	for _, c := range []struct {
		name    string
		decider *fakeDecider
		inv     ratelimit.Invocation
		status  int
		after   string
	}{
		{"admitted", decides(ratelimit.Decision{Outcome: ratelimit.Admitted}, standing), ratelimit.Invocation{Function: "f"}, 204, ""},
		{"denied", decides(ratelimit.Decision{Tier: ratelimit.Account, Rate: hourly, RetryAfter: 1}, standing),
			ratelimit.Invocation{Function: "f"}, 429, "1"},
		{"undecidable", &fakeDecider{}, ratelimit.Invocation{}, 400, ""},
		{"stopped", fails(ratelimit.ErrStopped), ratelimit.Invocation{Function: "f"}, 503, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ran := false
			next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				ran = true
				w.WriteHeader(http.StatusNoContent)
			})
			g := openGate(t, c.decider)
			h := g.Middleware(func(*http.Request) ratelimit.Invocation { return c.inv })(next)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/invoke/f", nil))
			if w.Code != c.status || ran != (c.status == http.StatusNoContent) {
				t.Fatalf("%d, ran %v; want %d", w.Code, ran, c.status)
			}
			if got := w.Header().Get("Retry-After"); got != c.after {
				t.Fatalf("Retry-After %q, want %q", got, c.after)
			}
			if inv, asked := c.decider.last(); asked && inv.Cost != 1 {
				t.Fatalf("charged %d units for a call that runs", inv.Cost)
			}
		})
	}
}
