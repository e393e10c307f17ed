package policy

import (
	"hash/fnv"

	"github.com/headgate-io/headgate/ratelimit"
)

// name is what a policy is for.
type name struct{ function, version string }

// index is what consecutive listed sources know, merged. It is immutable.
type index struct {
	policies map[name]*ratelimit.Policy // none for the function Any
}

// newIndex merges lists; the first source that knows a function wins. A policy
// is left out where an earlier source has one for the same version, or for
// every version, of its function.
func newIndex(lists [][]*ratelimit.Policy) index {
	merged := make(map[name]*ratelimit.Policy)
	for _, list := range lists {
		var added []*ratelimit.Policy // found after this list, not while it is read
		for _, p := range list {
			if p.Function != ratelimit.Any && (index{merged}).find(p.Function, p.Version) == nil {
				added = append(added, p)
			}
		}
		for _, p := range added {
			merged[name{p.Function, p.Version}] = p
		}
	}
	return index{merged}
}

// find is the policy for the version, else the one for every version, else nil.
func (x index) find(function, version string) *ratelimit.Policy {
	if p := x.policies[name{function, version}]; p != nil {
		return p
	}
	return x.policies[name{function, ratelimit.Any}]
}

// stage is one step of the first round: an index, then perhaps a source that
// is asked.
type stage struct {
	listed index
	asked  Asking // nil in the last stage
}

// snapshot is all that a look-up needs. It is immutable.
type snapshot struct {
	stages   []stage
	fallback *ratelimit.Policy // for (Any, Any); nil for none
	all      []*ratelimit.Policy
	denies   bool
}

// newSnapshot takes the sources in their order; lists holds what each listed
// one told, nothing for the others.
func newSnapshot(order []Source, lists map[string][]*ratelimit.Policy) *snapshot {
	s := &snapshot{}
	var pending [][]*ratelimit.Policy
	for _, source := range order {
		if asked, ok := source.(Asking); ok {
			s.stages = append(s.stages, stage{newIndex(pending), asked})
			pending = nil
			continue
		}
		list := lists[source.Name()]
		pending = append(pending, list)
		s.all = append(s.all, list...)
	}
	s.stages = append(s.stages, stage{listed: newIndex(pending)})
	for _, p := range s.all {
		s.denies = s.denies || p.OnStoreFailure == ratelimit.FailDeny
		if s.fallback == nil && p.Function == ratelimit.Any {
			s.fallback = p
		}
	}
	return s
}

// fingerprint is equal for equal lists of revisions, within 53 bits so that a
// float64 holds it. 0 stands for no policy.
func (s *snapshot) fingerprint() float64 {
	if len(s.all) == 0 {
		return 0
	}
	// The sum does not depend on the order, which differs between nodes.
	var sum uint64
	for _, p := range s.all {
		h := fnv.New64a()
		for _, part := range []string{p.Source, p.Function, p.Version, p.Revision} {
			h.Write([]byte(part))
			h.Write([]byte{0})
		}
		sum += h.Sum64()
	}
	return float64(sum >> 11)
}
