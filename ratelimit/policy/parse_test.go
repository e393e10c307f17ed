package policy

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// The example of the design: every field, with its defaults spelled out.
const whole = `
function: 7f9c
version: "*"
total:   { rates: "5000-S" }
account:
  rates: "10-S,1000-H"
  overrides: { acme: "100-S" }
  exclude: [platform-probes]
subject: { rates: "5-S,500-H" }
consistency: leased
onStoreFailure: local
enforce: true
`

func perSecond(n int64) counter.Rate { return counter.Rate{Units: n, Period: time.Second} }
func perHour(n int64) counter.Rate   { return counter.Rate{Units: n, Period: time.Hour} }

func TestParse_whole(t *testing.T) {
	t.Parallel()
	got, warnings, err := Parse([]byte(whole))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("error %v, warnings %v", err, warnings)
	}
	want := &ratelimit.Policy{
		Function: "7f9c", Version: "*",
		Total:     []counter.Rate{perSecond(5000)},
		Account:   []counter.Rate{perSecond(10), perHour(1000)},
		Overrides: map[string][]counter.Rate{"acme": {perSecond(100)}},
		Exclude:   map[string]struct{}{"platform-probes": {}},
		Subject:   []counter.Rate{perSecond(5), perHour(500)},
	}
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Fatalf("got %+v, want %+v", got[0], want)
	}
}

func TestParse_forms(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string // function/version of each policy
	}{
		{"no document", "", nil},
		{"only a comment", "# none yet\n", nil},
		{"empty documents between others", "---\n# a\n---\nfunction: f\n---\n", []string{"f/*"}},
		{"several documents", "function: f\n---\nfunction: g\nversion: v1\n", []string{"f/*", "g/v1"}},
		{"a list", "- function: f\n- {function: g}\n", []string{"f/*", "g/*"}},
		{"JSON", `{"function":"f","version":"v1"}`, []string{"f/v1"}},
		{"JSON, one after the other", "{\"function\":\"f\"}\n{\"function\":\"g\"}", []string{"f/*", "g/*"}},
		{"JSON list", `[{"function":"f"},{"function":"g"}]`, []string{"f/*", "g/*"}},
		{"JSON escapes that YAML lacks", `{"function":"\ud83d\ude00\/"}`, []string{"😀//*"}},
		{"YAML in flow style", `{function: f, version: v1}`, []string{"f/v1"}},
		{"numbers stand for their text", "function: 7e10\nversion: 1.0\n", []string{"7e10/1.0"}},
		{"the default policy", `function: "*"`, []string{"*/*"}},
		{"byte order mark", "\xef\xbb\xbf{\"function\":\"f\"}", []string{"f/*"}},
		{"an alias", "- &a {function: f}\n- function: &g g\n  version: *g\n", []string{"f/*", "g/g"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			policies, _, err := Parse([]byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range policies {
				got = append(got, p.Function+"/"+p.Version)
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestParse_rates(t *testing.T) {
	t.Parallel()
	bucket := counter.Rate{Units: 10, Period: 30 * time.Second, Algorithm: counter.TokenBucket, Burst: 20}
	tests := []struct {
		text string
		want []counter.Rate
	}{
		{`"10-S"`, []counter.Rate{perSecond(10)}},
		{`" 10-s , , 100-H"`, []counter.Rate{perSecond(10), perHour(100)}},
		{`"5-S,4-S"`, []counter.Rate{perSecond(4)}},
		{`0-S`, []counter.Rate{perSecond(0)}},
		{`[{units: 10, period: 1s}]`, []counter.Rate{perSecond(10)}},
		{`[10-S, {units: 100, period: h}]`, []counter.Rate{perSecond(10), perHour(100)}},
		{`[{units: 10, period: 30s, algorithm: token-bucket, burst: 20}]`, []counter.Rate{bucket}},
		{`["10/30s token-bucket burst=20"]`, []counter.Rate{bucket}},
		{`[{units: 10, period: 7d, algorithm: fixed}]`,
			[]counter.Rate{{Units: 10, Period: 7 * 24 * time.Hour, Algorithm: counter.Fixed}}},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			policies, _, err := Parse([]byte("function: f\ntotal: {rates: " + tt.text + "}\n"))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(policies[0].Total, tt.want) {
				t.Fatalf("got %v, want %v", policies[0].Total, tt.want)
			}
		})
	}
}

func TestParse_behaviour(t *testing.T) {
	t.Parallel()
	policies, _, err := Parse([]byte("function: f\nconsistency: delayed\nonStoreFailure: deny\nenforce: false\n"))
	if err != nil {
		t.Fatal(err)
	}
	p := policies[0]
	if p.Consistency != ratelimit.Delayed || p.OnStoreFailure != ratelimit.FailDeny || !p.Shadow {
		t.Fatalf("got %+v", p)
	}
}

// Every fault is told at once, each where it stands, and without an account in
// the text that may be logged.
func TestParse_faults(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string // path | text
	}{
		{"everything wrong at once", `
version: v1
totl: {rates: "10-S"}
total: {rates: "10-S,10-X,-5-S", burst: 3}
account: {rates: "", overrides: {"acme corp.": "1.5-S", b: {}}, exclude: [x, null]}
subject: {}
consistency: exactly
onStoreFailure: 1
enforce: "yes"
`, []string{
			`function|line 2: function: is required`,
			`totl|line 3: unknown field, known are function, version, total, account, subject, consistency, onStoreFailure, enforce`,
			`total.burst|line 4: total: unknown field, known are rates`,
			`total.rates|line 4: total.rates: "10-X" the period after '-' must be one of the letters S, M, H, D`,
			`total.rates|line 4: total.rates: "-5-S" units must be a whole number from 0 to 9007199254740992`,
			`account.rates|line 5: account.rates: no rate given`,
			`account.overrides."acme corp."|line 5: account.overrides[1]: "1.5-S" units must be a whole number from 0 to 9007199254740992`,
			`account.overrides.b|line 5: account.overrides[2]: must be rates such as "10-S,300-H" or a list of them, is a mapping`,
			`account.exclude[2]|line 5: account.exclude[2]: must be an account, is empty`,
			`subject.rates|line 6: subject.rates: is required`,
			`consistency|line 7: consistency: "exactly" must be leased, exact or delayed`,
			`onStoreFailure|line 8: onStoreFailure: "1" must be local, allow or deny`,
			`enforce|line 9: enforce: "yes" must be true or false`,
		}},
		{"the long form", `
function: f
total: {rates: [{units: -1, period: 1w, burst: 0}, {algorithm: leaky}, {units: 1, period: 10ms, x: 1}, {units: 1, period: "1s fixed"}]}
`, []string{
			`total.rates[1].units|line 3: total.rates[1].units: "-1" must be a whole number from 0 to 9007199254740992`,
			`total.rates[1].period|line 3: total.rates[1].period: "1w" the period after '/' must be a duration such as 30s, 5m, 1h30m or 7d`,
			`total.rates[1].burst|line 3: total.rates[1].burst: "0" must be a whole number from 1 to 9007199254740992`,
			`total.rates[1].burst|line 3: total.rates[1].burst: "0" is for token-bucket only`,
			`total.rates[2].units|line 3: total.rates[2].units: is required`,
			`total.rates[2].period|line 3: total.rates[2].period: is required`,
			`total.rates[2].algorithm|line 3: total.rates[2].algorithm: "leaky" must be sliding, fixed or token-bucket`,
			`total.rates[3].x|line 3: total.rates[3]: unknown field, known are units, period, algorithm, burst`,
			`total.rates[3].period|line 3: total.rates[3].period: "10ms" period must be from 1s to 366d`,
			`total.rates[4].period|line 3: total.rates[4].period: "1s fixed" must be a duration such as 30s, 5m, 1h30m or 7d`,
		}},
		{"several documents", "function: f\n---\nfunction: f\nversion: '*'\n---\nversion: v\n---\n7\n", []string{
			`[3].function|line 6: [3].function: is required`,
			`[4]|line 8: [4]: must be a mapping of function, version, total, account, subject, consistency, onStoreFailure, enforce, is a single value`,
			`function|line 3: function: "f" with version "*" has a policy already, at line 1`,
		}},
		{"an account where its field was forgotten", "function: f\naccount:\n  acme: 10-S\n", []string{
			`account.acme|line 3: account: unknown field, known are rates, overrides, exclude`,
			`account.rates|line 3: account.rates: is required when there are no overrides`,
		}},
		{"an account given twice", "function: f\naccount: {overrides: {acme: 10-S, acme: 5-S, '*': 1-S}, exclude: acme}\n", []string{
			`account.overrides.acme|line 2: account.overrides[2]: is given twice`,
			`account.overrides.*|line 2: account.overrides[3]: "*" is no account; account.rates is for every account`,
			`account.exclude|line 2: account.exclude: must be a list of accounts, is a single value`,
		}},
		{"a version of every function", "function: '*'\nversion: v1\n", []string{
			`version|line 2: version: "v1" must be "*" when the function is "*"`,
		}},
		{"names", "function: \"a\\tb\"\nversion: ''\naccount: {overrides: {" + strings.Repeat("x", 257) + ": 1-S}}\n", []string{
			`function|line 1: function: "a\tb" holds a control character`,
			`version|line 2: version: must not be empty`,
			`account.overrides.` + strings.Repeat("x", 257) + `|line 3: account.overrides[1]: has 257 bytes, at most 256 may be given`,
		}},
		{"a field without a value", "function: f\ntotal:\n", []string{
			`total|line 2: total: must be a mapping of rates, is empty`,
		}},
		{"half a file", "function: f\ntotal: {rates: \"10", []string{
			`|line 2: not YAML: found unexpected end of stream`,
		}},
		{"half a JSON file", "{\"function\":\"f\",\n\"total\":", []string{
			`|line 2: not JSON: unexpected EOF`,
		}},
		{"deep JSON", strings.Repeat("[", 40), []string{`|line 1: not JSON: nested deeper than 32`}},
		{"a field given twice", "{\"function\":\"f\",\n\"function\":\"g\"}", []string{
			`function|line 2: function: "function" is given twice`,
		}},
		{"not UTF-8", "function: f\nversion: \xff\n", []string{`|line 2: is not UTF-8`}},
		{"an alias of itself", "function: f\ntotal: &a {rates: *a}\n", []string{
			`total.rates|line 2: total.rates: must be rates such as "10-S,300-H" or a list of them, is a mapping`,
		}},
		{"a merge key", "function: f\n<<: {total: {rates: 1-S}}\n", []string{
			`<<|line 2: unknown field, known are function, version, total, account, subject, consistency, onStoreFailure, enforce`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			policies, _, err := Parse([]byte(tt.text))
			if policies != nil || !errors.Is(err, ErrPolicy) {
				t.Fatalf("policies %v, error %v", policies, err)
			}
			got := map[string]int{}
			for _, f := range Faults(err) {
				got[f.Path+"|"+f.Error()]++
			}
			for _, want := range tt.want {
				if got[want]--; got[want] < 0 {
					t.Errorf("missing  %s", want)
				}
			}
			for more, n := range got {
				if n > 0 {
					t.Errorf("too many %s", more)
				}
			}
			if strings.Contains(err.Error(), "acme") {
				t.Errorf("an account is named in %q", err)
			}
		})
	}
}

func TestParse_warnings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       string // empty: none
	}{
		{"an hour above the seconds in it", `total: {rates: "1-S,3601-H"}`,
			"line 2: total.rates: 3601-H never binds: 1-S lets at most 3600 through in 1h0m0s"},
		{"an hour at the seconds in it", `total: {rates: "1-S,3600-H"}`, ""},
		{"a second above its hour", `subject: {rates: "20-S,10-H"}`,
			"line 2: subject.rates: 20-S never binds: 10-H lets at most 10 through in 1s"},
		{"a total below an override", "total: {rates: 50-S}\naccount: {rates: 10-S, overrides: {acme: 100-S}}",
			"line 3: account.overrides[1]: 100-S never binds: total.rates 50-S lets at most 50 through in 1s"},
		{"a total below the account tier", "total: {rates: 50-S}\naccount: {rates: 51-S}",
			"line 3: account.rates: 51-S never binds: total.rates 50-S lets at most 50 through in 1s"},
		{"an account tier below the subject tier", "account: {rates: 10-S}\nsubject: {rates: 11-S}",
			"line 3: subject.rates: 11-S never binds: account.rates 10-S lets at most 10 through in 1s"},
		{"the same, but for some accounts", "account: {rates: 10-S, exclude: [x]}\nsubject: {rates: 11-S}", ""},
		{"windows need not align", `total: {rates: ["1/s fixed", "3601-H"]}`, ""},
		{"a bucket lets its burst through", `total: {rates: ["1/s token-bucket burst=100", "3650-H"]}`, ""},
		{"a bucket that is outrun", `total: {rates: ["1/s token-bucket burst=100", "3701-H"]}`,
			"line 2: total.rates: 3701-H never binds: 1-S token-bucket burst=100 lets at most 3700 through in 1h0m0s"},
		{"bounds that do not fit", `total: {rates: "9007199254740992/1s,9007199254740991/366d"}`,
			"line 2: total.rates: 9007199254740992-S never binds: 9007199254740991/366d lets at most 9007199254740991 through in 1s"},
		{"no tier", ``, "line 1: has no tier: it limits nothing"},
		{"exclusions from nothing", `account: {overrides: {a: 1-S}, exclude: [b]}`,
			"line 2: account.exclude: exempts from account.rates, which are not given"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, warnings, err := Parse([]byte("function: f\n" + tt.text + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range warnings {
				got = append(got, w.String())
			}
			if strings.Join(got, "\n") != tt.want {
				t.Fatalf("got  %s\nwant %s", strings.Join(got, "\n"), tt.want)
			}
		})
	}
}
