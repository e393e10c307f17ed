package policy

import (
	"fmt"

	"github.com/headgate-io/headgate/ratelimit"
	"go.yaml.in/yaml/v3"
)

// located is a policy and where it was written.
type located struct {
	policy *ratelimit.Policy
	place  string
	line   int
}

// Parse reads the policies of a text in YAML or JSON: documents one after the
// other, or lists of them. A text without documents holds no policy, which is
// no fault.
//
// The error joins every [*Fault] of the text and wraps [ErrPolicy]; no policy
// comes back beside it. The policies carry neither Source nor Revision, and
// belong to the caller.
func Parse(data []byte) ([]*ratelimit.Policy, []Warning, error) {
	found, warnings, faults := parse("", data)
	faults = append(faults, duplicates(found)...)
	if len(faults) > 0 {
		return nil, warnings, joinFaults(faults)
	}
	return policiesOf(found), warnings, nil
}

func policiesOf(found []located) []*ratelimit.Policy {
	policies := make([]*ratelimit.Policy, len(found))
	for i := range found {
		policies[i] = found[i].policy
	}
	return policies
}

// parse reads one text; place names it where there are several.
func parse(place string, data []byte) ([]located, []Warning, []*Fault) {
	docs, fault := roots(data)
	if fault != nil {
		fault.Place = place
		return nil, nil, []*Fault{fault}
	}
	d := &decoder{place: place}
	spots := policySpots(docs)
	var found []located
	for _, s := range spots {
		if p := d.policy(s); p != nil {
			found = append(found, located{p, place, s.line()})
		}
	}
	return found, d.warnings, d.faults
}

// policySpots lists what should be policies. Their paths are empty when there
// is one, else "[1]", "[2]" in the order of the text.
func policySpots(docs []*yaml.Node) []spot {
	var nodes []*yaml.Node
	for _, doc := range docs {
		switch {
		case doc.Kind == yaml.SequenceNode:
			nodes = append(nodes, doc.Content...)
		case doc.Kind == yaml.ScalarNode && doc.Tag == "!!null":
			// Nothing but comments between two separators.
		default:
			nodes = append(nodes, doc)
		}
	}
	if len(nodes) == 1 {
		return []spot{{node: resolve(nodes[0])}}
	}
	spots := make([]spot, len(nodes))
	for i, node := range nodes {
		spots[i] = spot{}.item(i, node)
	}
	return spots
}

// duplicates are the policies whose function and version came before.
func duplicates(found []located) []*Fault {
	type name struct{ function, version string }
	first := make(map[name]located, len(found))
	var faults []*Fault
	for _, l := range found {
		n := name{l.policy.Function, l.policy.Version}
		earlier, again := first[n]
		if !again {
			first[n] = l
			continue
		}
		where := fmt.Sprintf("line %d", earlier.line)
		if earlier.place != l.place {
			where = fmt.Sprintf("%s line %d", earlier.place, earlier.line)
		}
		faults = append(faults, &Fault{
			Place: l.place, Path: "function", safe: "function", Value: n.function, Line: l.line,
			Reason: fmt.Sprintf("with version %s has a policy already, at %s", quoted(n.version), where),
		})
	}
	return faults
}
