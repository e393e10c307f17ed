package policy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/headgate-io/headgate/ratelimit"
	"go.yaml.in/yaml/v3"
)

// MaxNameBytes bounds the names of functions, versions and accounts, as the
// gate bounds those of invocations.
const MaxNameBytes = 256

// decoder collects what is wrong while it reads. A value that is wrong leaves
// its field empty and the reading goes on, to find every fault.
type decoder struct {
	place    string
	faults   []*Fault
	warnings []Warning
}

func (d *decoder) fault(s spot, reason string) {
	d.faults = append(d.faults, &Fault{
		Place: d.place, Path: s.path, safe: s.safe, Value: s.text(), Reason: reason, Line: s.line(),
	})
}

// privateFault is a fault whose value may be an account.
func (d *decoder) privateFault(s spot, reason string) {
	d.fault(s, reason)
	d.faults[len(d.faults)-1].private = true
}

func (d *decoder) warn(s spot, reason string) {
	d.warnings = append(d.warnings, Warning{
		Place: d.place, Path: s.path, safe: s.safe, Reason: reason, Line: s.line(),
	})
}

// policyFields are the fields of a policy, in the order in which they are
// written.
var policyFields = []string{
	"function", "version", "total", "account", "subject", "consistency", "onStoreFailure", "enforce",
}

// policy reads one policy; nil when it has faults.
func (d *decoder) policy(s spot) *ratelimit.Policy {
	before := len(d.faults)
	fields, ok := d.fields(s, policyFields)
	if !ok {
		return nil
	}
	p := &ratelimit.Policy{Version: ratelimit.Any}
	d.names(s, fields, p)
	tiers := d.tiers(fields, p)
	d.behaviour(fields, p)
	if len(d.faults) > before {
		return nil
	}
	d.checkTiers(s, tiers, p)
	return p
}

// fields reads a mapping of known fields. Unknown and repeated ones are faults.
func (d *decoder) fields(s spot, known []string) (map[string]spot, bool) {
	if s.node == nil || s.node.Kind != yaml.MappingNode {
		d.privateFault(s, fmt.Sprintf("must be a mapping of %s, is %s", strings.Join(known, ", "), s.kind()))
		return nil, false
	}
	fields := make(map[string]spot, len(known))
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		key, value := s.node.Content[i], s.node.Content[i+1]
		name := key.Value
		at := s.field(name, value)
		switch {
		case !slices.Contains(known, name) || key.Kind != yaml.ScalarNode:
			// The name may be an account whose "overrides:" was forgotten.
			bad := spot{joinPath(s.path, escapeStep(name)), s.safe, key}
			d.privateFault(bad, "unknown field, known are "+strings.Join(known, ", "))
		case fields[name].node != nil:
			d.fault(spot{at.path, at.safe, key}, "is given twice")
		case at.node == nil:
			d.fault(spot{at.path, at.safe, key}, "is an alias of itself")
		default:
			fields[name] = at
		}
	}
	return fields, true
}

// names reads what the policy is for.
func (d *decoder) names(s spot, fields map[string]spot, p *ratelimit.Policy) {
	if f, ok := fields["function"]; ok {
		p.Function = d.name(f)
	} else {
		d.fault(spot{joinPath(s.path, "function"), joinPath(s.safe, "function"), placeOnly(s)}, "is required")
	}
	v, ok := fields["version"]
	if !ok {
		return
	}
	p.Version = d.name(v)
	if p.Function == ratelimit.Any && p.Version != ratelimit.Any {
		d.fault(v, `must be "*" when the function is "*"`)
	}
}

// placeOnly is a node without a value, at the line of s.
func placeOnly(s spot) *yaml.Node { return &yaml.Node{Line: s.line()} }

func (d *decoder) name(s spot) string {
	text, ok := s.scalar()
	if !ok {
		d.fault(s, "must be a name, is "+s.kind())
		return ""
	}
	if reason := nameFault(text); reason != "" {
		d.fault(s, reason)
		return ""
	}
	return text
}

// nameFault is what is wrong with a name; empty when nothing is.
func nameFault(text string) string {
	switch {
	case text == "":
		return "must not be empty"
	case len(text) > MaxNameBytes:
		return fmt.Sprintf("has %d bytes, at most %d may be given", len(text), MaxNameBytes)
	case !utf8.ValidString(text):
		return "is not UTF-8"
	case strings.ContainsFunc(text, unicode.IsControl):
		return "holds a control character"
	default:
		return ""
	}
}

// behaviour reads how the policy is applied.
func (d *decoder) behaviour(fields map[string]spot, p *ratelimit.Policy) {
	if s, ok := fields["consistency"]; ok {
		p.Consistency = choice(d, s, ratelimit.Leased, ratelimit.Exact, ratelimit.Delayed)
	}
	if s, ok := fields["onStoreFailure"]; ok {
		p.OnStoreFailure = choice(d, s, ratelimit.FailLocal, ratelimit.FailAllow, ratelimit.FailDeny)
	}
	if s, ok := fields["enforce"]; ok {
		p.Shadow = !d.truth(s)
	}
}

// choice is the one of all that is spelled as the value is.
func choice[T fmt.Stringer](d *decoder, s spot, all ...T) T {
	text, _ := s.scalar()
	names := make([]string, len(all))
	for i, one := range all {
		if names[i] = one.String(); names[i] == text {
			return one
		}
	}
	d.fault(s, "must be "+strings.Join(names[:len(names)-1], ", ")+" or "+names[len(names)-1])
	return all[0]
}

func (d *decoder) truth(s spot) bool {
	if s.node.Kind == yaml.ScalarNode && s.node.Tag == "!!bool" {
		return strings.EqualFold(s.node.Value, "true")
	}
	d.fault(s, "must be true or false")
	return true
}
