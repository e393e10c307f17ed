package policy

import (
	"strings"
	"testing"

	"github.com/headgate-io/headgate/ratelimit"
)

func parsed(t *testing.T, text string) []*ratelimit.Policy {
	t.Helper()
	policies, _, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return policies
}

func TestDiff(t *testing.T) {
	t.Parallel()
	before := parsed(t, `
- {function: same, total: {rates: 10-S}}
- {function: gone, total: {rates: 10-S}}
- function: f
  total: {rates: 10-S}
  account: {rates: 5-S, overrides: {acme: 7-S, b.c: 1-S}, exclude: [x]}
`)
	after := parsed(t, `
- function: f
  account: {rates: "5-S,100-H", overrides: {acme: 8-S, b.c: 1-S}, exclude: [y]}
  subject: {rates: [{units: 3, period: 30s, algorithm: fixed}]}
  consistency: exact
  enforce: false
- {function: same, version: "*", total: {rates: 10/1s}, enforce: true}
- {function: new, version: v1, total: {rates: 1-S}}
`)
	const want = `~ f version *
    total.rates: 10-S -> (none)
    account.exclude.x: excluded -> (none)
    account.exclude.y: excluded
    account.overrides.acme: 7-S -> 8-S
    account.rates: 5-S -> 5-S,100-H
    subject.rates: 3/30s fixed
    consistency: leased -> exact
    enforce: true -> false
- gone version *
+ new version v1
    total.rates: 1-S
    consistency: leased
    onStoreFailure: local
    enforce: true
`
	var got strings.Builder
	for _, c := range Diff(before, after) {
		got.WriteString(c.String())
	}
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
	if changes := Diff(before, before); len(changes) != 0 {
		t.Errorf("a list differs from itself: %v", changes)
	}
}

func TestFixed(t *testing.T) {
	t.Parallel()
	f := NewFixed(of(File, "f/v1", "f/*", "*/*"))
	for ask, want := range map[string]string{"f/v1": "v1", "f/v2": "*", "g/v1": "*"} {
		function, version, _ := strings.Cut(ask, "/")
		if p, degraded := f.Find(t.Context(), function, version); p == nil || p.Version != want || degraded {
			t.Errorf("%s: got %+v, degraded %v", ask, p, degraded)
		}
	}
	if p, _ := NewFixed(nil).Find(t.Context(), "f", "v"); p != nil || f.Generation() != 0 {
		t.Errorf("got %+v", p)
	}
}
