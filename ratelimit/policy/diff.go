package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Kind is what became of a policy.
type Kind string

// The kinds of a [Change].
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// Change is what is different about the policy of one function's version. It
// names accounts: for operators, not for logs.
type Change struct {
	Kind     Kind          `json:"kind"`
	Function string        `json:"function"`
	Version  string        `json:"version"`
	Fields   []FieldChange `json:"fields,omitempty"`
}

// FieldChange is one field, as the document spells it. An empty side was, or
// is, not there.
type FieldChange struct {
	Path   string `json:"path"` // "account.overrides.acme"
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
}

// String is a few lines of text: "~ f version *", then "    total.rates: 10-S -> 20-S"
// for each field. An added policy starts with "+" and a removed one with "-".
func (c Change) String() string {
	var b strings.Builder
	sign := map[Kind]string{Added: "+", Removed: "-", Changed: "~"}[c.Kind]
	fmt.Fprintf(&b, "%s %s version %s\n", sign, c.Function, c.Version)
	for _, f := range c.Fields {
		switch {
		case f.Before == "":
			fmt.Fprintf(&b, "    %s: %s\n", f.Path, f.After)
		case f.After == "":
			fmt.Fprintf(&b, "    %s: %s -> (none)\n", f.Path, f.Before)
		case c.Kind == Changed:
			fmt.Fprintf(&b, "    %s: %s -> %s\n", f.Path, f.Before, f.After)
		}
	}
	return b.String()
}

// Diff compares two lists by function and version, sorted so. Where and when a
// policy was written makes no difference, only what it says.
func Diff(before, after []*ratelimit.Policy) []Change {
	old, now := byName(before), byName(after)
	names := maps.Clone(old)
	maps.Copy(names, now)
	var changes []Change
	for _, n := range slices.SortedFunc(maps.Keys(names), compareNames) {
		change := Change{Function: n.function, Version: n.version, Fields: diffFields(old[n], now[n])}
		switch {
		case old[n] == nil:
			change.Kind = Added
		case now[n] == nil:
			change.Kind, change.Fields = Removed, nil
		default:
			change.Kind = Changed
		}
		if change.Kind != Changed || len(change.Fields) > 0 {
			changes = append(changes, change)
		}
	}
	return changes
}

func byName(policies []*ratelimit.Policy) map[name]*ratelimit.Policy {
	m := make(map[name]*ratelimit.Policy, len(policies))
	for _, p := range policies {
		m[name{p.Function, p.Version}] = p
	}
	return m
}

func compareNames(a, b name) int {
	return cmp.Or(cmp.Compare(a.function, b.function), cmp.Compare(a.version, b.version))
}

func diffFields(before, after *ratelimit.Policy) []FieldChange {
	old, now := flatten(before), flatten(after)
	paths := maps.Clone(old)
	maps.Copy(paths, now)
	var fields []FieldChange
	for _, path := range slices.SortedFunc(maps.Keys(paths), comparePaths) {
		if old[path] != now[path] {
			fields = append(fields, FieldChange{path, old[path], now[path]})
		}
	}
	return fields
}

// comparePaths keeps the fields in the order in which they are written.
func comparePaths(a, b string) int {
	rank := func(path string) int {
		field, _, _ := strings.Cut(path, ".")
		return slices.Index(policyFields, field)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// flatten is a policy's fields by path; none for nil.
func flatten(p *ratelimit.Policy) map[string]string {
	fields := map[string]string{}
	if p == nil {
		return fields
	}
	for path, rates := range map[string][]counter.Rate{
		"total.rates": p.Total, "account.rates": p.Account, "subject.rates": p.Subject,
	} {
		if len(rates) > 0 {
			fields[path] = ratesText(rates)
		}
	}
	for account, rates := range p.Overrides {
		fields["account.overrides."+escapeStep(account)] = ratesText(rates)
	}
	for account := range p.Exclude {
		fields["account.exclude."+escapeStep(account)] = "excluded"
	}
	fields["consistency"] = p.Consistency.String()
	fields["onStoreFailure"] = p.OnStoreFailure.String()
	fields["enforce"] = strconv.FormatBool(!p.Shadow)
	return fields
}

func ratesText(rates []counter.Rate) string {
	texts := make([]string, len(rates))
	for i, r := range rates {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}
