package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/headgate-io/headgate/invocation/internal/reply"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// policyEntry is one policy and where it comes from.
type policyEntry struct {
	Function string `json:"function"`
	Version  string `json:"version"`
	Source   string `json:"source"`
	Revision string `json:"revision"`
	Stale    bool   `json:"stale"` // its source cannot be asked now
	// OverruledBy is the source that is asked earlier and knows the function,
	// so that this policy is not in force; empty when it is.
	OverruledBy string          `json:"overruledBy"`
	Policy      json.RawMessage `json:"policy"`
}

func entryOf(p *ratelimit.Policy, overruledBy string) (policyEntry, error) {
	doc, err := policy.EncodeJSON(p)
	if err != nil {
		return policyEntry{}, fmt.Errorf("encode a policy: %w", err)
	}
	return policyEntry{
		Function: p.Function, Version: p.Version, Source: p.Source, Revision: p.Revision,
		Stale: p.Stale, OverruledBy: overruledBy, Policy: doc,
	}, nil
}

// overruler returns, for a policy among those that the sources hold, the source
// that comes before its own and knows its function.
func overruler(all []*ratelimit.Policy) func(*ratelimit.Policy) string {
	type scope struct{ function, version string }
	rank := map[string]int{}
	first := map[scope]string{} // the first source that has exactly this
	for _, p := range all {
		if _, known := rank[p.Source]; !known {
			rank[p.Source] = len(rank)
		}
		s := scope{p.Function, p.Version}
		if _, known := first[s]; !known {
			first[s] = p.Source
		}
	}
	return func(p *ratelimit.Policy) string {
		own, known := rank[p.Source]
		if !known {
			own = len(rank)
		}
		for _, s := range []scope{{p.Function, p.Version}, {p.Function, ratelimit.Any}} {
			if source, there := first[s]; there && rank[source] < own {
				return source
			}
		}
		return ""
	}
}

func (h *handler) listPolicies(w http.ResponseWriter, r *http.Request) error {
	function, source := r.URL.Query().Get("function"), r.URL.Query().Get("source")
	all := h.parts.View.Policies()
	overruledBy := overruler(all)
	entries := []policyEntry{}
	for _, p := range all {
		if function != "" && p.Function != function || source != "" && p.Source != source {
			continue
		}
		entry, err := entryOf(p, overruledBy(p))
		if err != nil {
			return err
		}
		entries = append(entries, entry)
	}
	reply.JSON(w, http.StatusOK, struct {
		Policies []policyEntry `json:"policies"`
	}{entries})
	return nil
}

func (h *handler) getPolicy(w http.ResponseWriter, r *http.Request) error {
	effective, err := flag(r, "effective")
	if err != nil {
		return err
	}
	function, version := r.PathValue("function"), r.PathValue("version")
	all := h.parts.View.Policies()
	var p *ratelimit.Policy
	if effective {
		p, _ = h.parts.View.Find(r.Context(), function, version)
	} else if p, err = h.written(r, all, function, version); err != nil {
		return err
	}
	if p == nil { // nothing limits it
		return ErrNotFound
	}
	entry, err := entryOf(p, overruler(all)(p))
	if err != nil {
		return err
	}
	reply.JSON(w, http.StatusOK, entry)
	return nil
}

// written is the policy for exactly this function and version: the one in the
// store, else the first that another source holds. A store that is away is
// answered for by what this node last saw of it.
func (h *handler) written(r *http.Request, all []*ratelimit.Policy, function, version string) (*ratelimit.Policy, error) {
	p, err := h.parts.Policies.Get(r.Context(), function, version)
	if err == nil {
		return p, nil
	}
	gone := errors.Is(err, ErrNotFound)
	if !gone && !errors.Is(err, ErrNoStore) && !errors.Is(err, ratelimit.ErrUnavailable) {
		return nil, err
	}
	for _, p := range all {
		if p.Function == function && p.Version == version && !(gone && p.Source == policy.Bucket) {
			return p, nil
		}
	}
	return nil, err
}

// flag reads a query parameter that is true or false; absent is false.
func flag(r *http.Request, name string) (bool, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, invalid(name, "must be true or false")
	}
	return on, nil
}

// expectedRevision reads ?revision=, where 0 says that there is to be none.
func expectedRevision(r *http.Request) (revision uint64, given bool, err error) {
	text := r.URL.Query().Get("revision")
	if text == "" {
		return 0, false, nil
	}
	if revision, err = strconv.ParseUint(text, 10, 64); err != nil {
		return 0, false, invalid("revision", "must be a whole number; 0 when there is to be none")
	}
	return revision, true, nil
}
