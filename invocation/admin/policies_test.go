package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

const resizeURL = "/v1/policies/resize/*"

func hourly(n int) string { return fmt.Sprintf("function: resize\naccount: {rates: %d-H}\n", n) }

func TestPolicyStory(t *testing.T) {
	w := newWorld(t)
	for i, step := range []struct {
		say, method, target, body string
		status                    int
		want                      []string // in the answer
	}{
		{"nothing there", "GET", resizeURL, "", 404, []string{`"code":"not_found"`}},
		{"nothing listed", "GET", "/v1/policies", "", 200, []string{`"policies":[]`}},
		{"a dry run", "PUT", resizeURL + "?dryRun=true", hourly(10), 200,
			[]string{`"revision":""`, `"changed":true`, `"dryRun":true`, `"before":null`}},
		{"wrote nothing", "GET", resizeURL, "", 404, nil},
		{"expected to be there", "PUT", resizeURL + "?revision=3", hourly(10), 409,
			[]string{`"code":"conflict"`, `"field":"revision"`, "there is no such policy"}},
		{"written", "PUT", resizeURL + "?revision=0", hourly(10), 200, []string{`"revision":"1"`, `"changed":true`}},
		{"read", "GET", resizeURL, "", 200, []string{`"source":"bucket"`, `"revision":"1"`, `"overruledBy":""`, "10-H"}},
		{"the same again changes nothing", "PUT", resizeURL, hourly(10), 200, []string{`"revision":"1"`, `"changed":false`}},
		{"in JSON too", "PUT", resizeURL, `{"function":"resize","account":{"rates":"10-H"}}`, 200, []string{`"changed":false`}},
		{"expected to be new", "PUT", resizeURL + "?revision=0", hourly(20), 409,
			[]string{`"revision":"1"`, "the policy is at revision 1"}},
		{"compared and set", "PUT", resizeURL + "?revision=1", hourly(20), 200, []string{`"revision":"2"`, "10-H", "20-H"}},
		{"late", "PUT", resizeURL + "?revision=1", hourly(30), 409, []string{`"revision":"2"`}},
		{"a dry run compares too", "PUT", resizeURL + "?revision=1&dryRun=true", hourly(30), 409, nil},
		{"whatever is there", "PUT", resizeURL, hourly(30), 200, []string{`"revision":"3"`, `"changed":true`}},
		{"removed by one who is late", "DELETE", resizeURL + "?revision=2", "", 409, []string{`"revision":"3"`}},
		{"removed as nothing", "DELETE", resizeURL + "?revision=0", "", 400, []string{`"field":"revision"`}},
		{"removed", "DELETE", resizeURL + "?revision=3", "", 204, nil},
		{"removed twice", "DELETE", resizeURL, "", 404, nil},
	} {
		a := w.ask(t, step.method, step.target, step.body)
		if a.status != step.status {
			t.Fatalf("%d, %s: %d %s, want %d", i, step.say, a.status, a.body, step.status)
		}
		for _, want := range step.want {
			if !strings.Contains(a.body, want) {
				t.Errorf("%d, %s: %s is not in %s", i, step.say, want, a.body)
			}
		}
	}
}

func TestPolicyRefusals(t *testing.T) {
	for _, c := range []struct {
		name, target, body string
		status             int
		want               string
	}{
		{"another function", "/v1/policies/other/*", hourly(1), 400, `"field":"function"`},
		{"another version", "/v1/policies/resize/v1", hourly(1), 400, `"field":"version"`},
		{"two policies", resizeURL, hourly(1) + "---\n" + strings.Replace(hourly(1), "resize", "b", 1), 400, "one policy, it holds 2"},
		{"none", resizeURL, "", 400, "one policy, it holds 0"},
		{"a rate that is none", resizeURL, "function: resize\naccount: {rates: 10-X}\n", 400, `"path":"account.rates"`},
		{"an unknown field", resizeURL, "function: resize\nacount: {}\n", 400, `"code":"invalid_policy"`},
		{"every fault at once", resizeURL, "function: resize\nsubject: {rates: 1-X}\ntotal: {rates: 2-Y}\n", 400, `"path":"total.rates"`},
		{"revision that is no number", resizeURL + "?revision=new", hourly(1), 400, `"field":"revision"`},
		{"flag that is none", resizeURL + "?dryRun=perhaps", hourly(1), 400, `"field":"dryRun"`},
		{"too large", resizeURL, strings.Repeat("#", 600<<10), 413, `"code":"too_large"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			a := w.ask(t, http.MethodPut, c.target, c.body)
			if a.status != c.status || !strings.Contains(a.body, c.want) {
				t.Fatalf("%d %s, want %d with %s", a.status, a.body, c.status, c.want)
			}
			if len(w.book.stored) != 0 {
				t.Fatal("it was written all the same")
			}
		})
	}
}

// A source that is asked earlier overrules the store, and whoever writes there
// is told.
func TestOverruledPolicies(t *testing.T) {
	w := newWorld(t)
	w.book.file = []*ratelimit.Policy{
		{Function: "resize", Version: ratelimit.Any, Source: policy.File, Revision: "abc"},
		{Function: "blur", Version: "v1", Source: policy.File, Revision: "def"},
	}
	put := func(function, version string) string {
		t.Helper()
		a := w.ask(t, http.MethodPut, "/v1/policies/"+function+"/"+version,
			fmt.Sprintf("{function: %s, version: %q, total: {rates: 1-S}}", function, version))
		if a.status != http.StatusOK {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return a.body
	}
	for _, c := range []struct {
		function, version string
		overruled         bool
	}{
		{"resize", "*", true}, {"resize", "v1", true}, {"blur", "v1", true}, {"blur", "*", false}, {"sharpen", "*", false},
	} {
		body := put(c.function, c.version)
		if got := strings.Contains(body, "not in force"); got != c.overruled {
			t.Errorf("%s %s: warned %v, want %v: %s", c.function, c.version, got, c.overruled, body)
		}
		a := w.ask(t, http.MethodGet, "/v1/policies/"+c.function+"/"+c.version, "")
		if got := strings.Contains(a.body, `"overruledBy":"file"`); got != c.overruled || !strings.Contains(a.body, `"source":"bucket"`) {
			t.Errorf("%s %s: %s", c.function, c.version, a.body)
		}
	}
	if a := w.ask(t, http.MethodGet, resizeURL+"?effective=true", ""); !strings.Contains(a.body, `"source":"file"`) {
		t.Errorf("in force: %s", a.body)
	}
	if a := w.ask(t, http.MethodGet, "/v1/policies/blur/v2?effective=true", ""); !strings.Contains(a.body, `"version":"*"`) {
		t.Errorf("in force for another version: %s", a.body)
	}
	for target, want := range map[string]int{"": 7, "?source=file": 2, "?source=bucket": 5, "?function=blur": 3, "?function=x": 0} {
		var list struct{ Policies []struct{ Function string } }
		a := w.ask(t, http.MethodGet, "/v1/policies"+target, "")
		if err := json.Unmarshal([]byte(a.body), &list); err != nil || len(list.Policies) != want {
			t.Errorf("list%s: %d policies, want %d (%v)", target, len(list.Policies), want, err)
		}
	}
}

// A value that somebody wrote by hand and that cannot be read is replaced.
func TestPutMendsWhatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	_, _, broken := policy.Parse([]byte("function: resize\nversion: [\n"))
	if broken == nil {
		t.Fatal("it parses")
	}
	w.book.broken = map[scope]error{{"resize", "*"}: broken}
	if a := w.ask(t, http.MethodGet, resizeURL, ""); a.status != http.StatusBadRequest || !strings.Contains(a.body, `"faults":[{`) {
		t.Fatalf("read: %d %s", a.status, a.body)
	}
	if a := w.ask(t, http.MethodPut, resizeURL, hourly(10)); a.status != http.StatusOK || !strings.Contains(a.body, `"changed":true`) {
		t.Fatalf("mend: %d %s", a.status, a.body)
	}
}

// Names with any character find their policy.
func TestPolicyNamesAreEscaped(t *testing.T) {
	w := newWorld(t)
	const target = "/v1/policies/a%2Fb%20c.d%3F%23/v%2F%2F1"
	body := `{"function":"a/b c.d?#","version":"v//1","total":{"rates":"1-S"}}`
	if a := w.ask(t, http.MethodPut, target, body); a.status != http.StatusOK {
		t.Fatalf("write: %d %s", a.status, a.body)
	}
	if a := w.ask(t, http.MethodGet, target, ""); a.status != http.StatusOK || !strings.Contains(a.body, `"function":"a/b c.d?#"`) {
		t.Fatalf("read: %d %s", a.status, a.body)
	}
}

func TestValidate(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"good", hourly(1) + "---\nfunction: blur\nversion: v1\ntotal: {rates: 1-S}\n",
			[]string{`"valid":true`, `{"function":"blur","version":"v1"}`, `"faults":[]`}},
		{"bad", "function: resize\nsubject: {rates: 1-X}\ntotal: {rates: 2-Y}\n",
			[]string{`"valid":false`, `"path":"subject.rates"`, `"path":"total.rates"`, `"line":2`}},
		{"useless", "function: resize\naccount: {rates: '10-S,40000-H'}\n", []string{`"valid":true`, `"warnings":[{`, "never binds"}},
		{"nothing", "# only a comment", []string{`"valid":true`, `"policies":[]`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := w.ask(t, http.MethodPost, "/v1/policies:validate", c.body)
			for _, want := range c.want {
				if a.status != http.StatusOK || !strings.Contains(a.body, want) {
					t.Errorf("%d %s, want %s", a.status, a.body, want)
				}
			}
		})
	}
}

// The store is away: what this node last saw can still be read, nothing can be
// written, and each says which.
func TestPoliciesWithoutTheStore(t *testing.T) {
	w := newWorld(t)
	if a := w.ask(t, http.MethodPut, resizeURL, hourly(10)); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	for _, c := range []struct {
		failure error
		write   int
		read    int
	}{
		{ratelimit.ErrUnavailable, http.StatusServiceUnavailable, http.StatusOK},
		{fmt.Errorf("write: %w", ratelimit.ErrUnknown), http.StatusGatewayTimeout, http.StatusGatewayTimeout},
		{context.DeadlineExceeded, http.StatusGatewayTimeout, http.StatusGatewayTimeout},
	} {
		w.failure = c.failure
		if a := w.ask(t, http.MethodPut, resizeURL, hourly(20)); a.status != c.write {
			t.Errorf("write with %v: %d %s, want %d", c.failure, a.status, a.body, c.write)
		}
		if a := w.ask(t, http.MethodDelete, resizeURL, ""); a.status != c.write {
			t.Errorf("remove with %v: %d %s, want %d", c.failure, a.status, a.body, c.write)
		}
		if a := w.ask(t, http.MethodGet, resizeURL, ""); a.status != c.read {
			t.Errorf("read with %v: %d %s, want %d", c.failure, a.status, a.body, c.read)
		}
	}
}
