package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/headgate-io/headgate/invocation/internal/reply"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// maxPolicyBytes bounds one policy: a message of the store holds no more.
const maxPolicyBytes = 512 << 10

// change is what a PUT came to, or would come to.
type change struct {
	Function string `json:"function"`
	Version  string `json:"version"`
	// Revision is that of the policy afterwards; after a dry run, of what is
	// there, empty when that is nothing.
	Revision string          `json:"revision"`
	Changed  bool            `json:"changed"`
	DryRun   bool            `json:"dryRun"`
	Before   json.RawMessage `json:"before"` // null when there was none that can be read
	After    json.RawMessage `json:"after"`
	Warnings []warning       `json:"warnings"`

	unreadable bool // there is one, which cannot be read
}

// warning is a limit that is valid and does nothing, or not what it seems to.
type warning struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Line   int    `json:"line"`
}

func (h *handler) putPolicy(w http.ResponseWriter, r *http.Request) error {
	dryRun, err := flag(r, "dryRun")
	if err != nil {
		return err
	}
	expected, given, err := expectedRevision(r)
	if err != nil {
		return err
	}
	p, warnings, err := readPolicy(w, r)
	if err != nil {
		return err
	}
	c, err := h.compare(r.Context(), p)
	if err != nil {
		return err
	}
	c.DryRun, c.Warnings = dryRun, h.warningsOf(p, warnings)
	if given && strconv.FormatUint(expected, 10) != cmp.Or(c.Revision, "0") && !c.unreadable {
		current, _ := strconv.ParseUint(c.Revision, 10, 64) // empty is 0: there is none
		return &ConflictError{Current: current}
	}
	if !dryRun && c.Changed {
		if err := h.apply(r.Context(), p, &c, expected, given); err != nil {
			return err
		}
	}
	reply.JSON(w, http.StatusOK, c)
	return nil
}

// compare says what writing p would change.
func (h *handler) compare(ctx context.Context, p *ratelimit.Policy) (change, error) {
	c := change{Function: p.Function, Version: p.Version}
	var err error
	if c.After, err = policy.EncodeJSON(p); err != nil {
		return c, fmt.Errorf("encode a policy: %w", err)
	}
	before, err := h.parts.Policies.Get(ctx, p.Function, p.Version)
	switch {
	case errors.Is(err, ErrNotFound):
	case errors.Is(err, policy.ErrPolicy): // written by hand; this mends it
		c.unreadable = true
	case err != nil:
		return c, err
	default:
		c.Revision = before.Revision
		if c.Before, err = policy.EncodeJSON(before); err != nil {
			return c, fmt.Errorf("encode a policy: %w", err)
		}
	}
	c.Changed = !bytes.Equal(c.Before, c.After)
	return c, nil
}

// apply writes p, comparing with the revision that the caller gave, if any.
func (h *handler) apply(ctx context.Context, p *ratelimit.Policy, c *change, expected uint64, given bool) error {
	var revision uint64
	var err error
	if given {
		revision, err = h.parts.Policies.Put(ctx, p, expected)
	} else {
		revision, c.Changed, err = h.parts.Policies.Apply(ctx, p)
	}
	if err == nil {
		c.Revision = strconv.FormatUint(revision, 10)
	}
	return err
}

// warningsOf adds to a document's own warnings that an earlier source overrules
// it.
func (h *handler) warningsOf(p *ratelimit.Policy, own []policy.Warning) []warning {
	all := plainWarnings(own)
	stored := *p
	stored.Source = policy.Bucket
	if by := overruler(h.parts.View.Policies())(&stored); by != "" {
		all = append(all, warning{Reason: fmt.Sprintf("not in force: the source %q knows the function and is asked first", by)})
	}
	return all
}

func plainWarnings(own []policy.Warning) []warning {
	all := []warning{}
	for _, o := range own {
		all = append(all, warning{Path: o.Path, Reason: o.Reason, Line: o.Line})
	}
	return all
}

// readPolicy reads the one policy of a body, which must be the one of the path.
func readPolicy(w http.ResponseWriter, r *http.Request) (*ratelimit.Policy, []policy.Warning, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPolicyBytes))
	if err != nil {
		return nil, nil, readFault(err)
	}
	policies, warnings, err := policy.Parse(data)
	switch {
	case err != nil:
		return nil, nil, err
	case len(policies) != 1:
		return nil, nil, &problem{
			status: http.StatusBadRequest, Code: "invalid",
			Message: fmt.Sprintf("the body must hold one policy, it holds %d", len(policies)),
		}
	case policies[0].Function != r.PathValue("function"):
		return nil, nil, invalid("function", "is not that of the path")
	case policies[0].Version != r.PathValue("version"):
		return nil, nil, invalid("version", "is not that of the path")
	}
	return policies[0], warnings, nil
}

// readFault is why a body could not be read: too large, or the caller's doing.
func readFault(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return err
	}
	return &problem{status: http.StatusBadRequest, Code: "invalid", Message: "the body could not be read"}
}

func (h *handler) deletePolicy(w http.ResponseWriter, r *http.Request) error {
	expected, given, err := expectedRevision(r)
	if err != nil {
		return err
	}
	if given && expected == 0 {
		return invalid("revision", "must be more than 0 to remove something")
	}
	if err := h.parts.Policies.Delete(r.Context(), r.PathValue("function"), r.PathValue("version"), expected); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// validation is what a text is worth.
type validation struct {
	Valid    bool          `json:"valid"`
	Policies []policyScope `json:"policies"`
	Faults   []fault       `json:"faults"`
	Warnings []warning     `json:"warnings"`
}

type policyScope struct {
	Function string `json:"function"`
	Version  string `json:"version"`
}

func (h *handler) validatePolicies(w http.ResponseWriter, r *http.Request) error {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, policy.MaxBytes))
	if err != nil {
		return readFault(err)
	}
	policies, warnings, err := policy.Parse(data)
	v := validation{Valid: err == nil, Policies: []policyScope{}, Faults: faultsOf(err), Warnings: plainWarnings(warnings)}
	for _, p := range policies {
		v.Policies = append(v.Policies, policyScope{p.Function, p.Version})
	}
	reply.JSON(w, http.StatusOK, v)
	return nil
}
