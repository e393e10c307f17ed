package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// Policy is one policy as the server knows it, and where it comes from.
type Policy struct {
	Function string `json:"function"`
	Version  string `json:"version"`
	Source   string `json:"source"`
	Revision string `json:"revision"`
	Stale    bool   `json:"stale"` // its source cannot be asked now
	// OverruledBy is the source because of which this policy is not in force.
	OverruledBy string          `json:"overruledBy"`
	Policy      json.RawMessage `json:"policy"` // the document
}

// Change is what writing a policy came to, or would come to.
type Change struct {
	Function string          `json:"function"`
	Version  string          `json:"version"`
	Revision string          `json:"revision"`
	Changed  bool            `json:"changed"`
	DryRun   bool            `json:"dryRun"`
	Before   json.RawMessage `json:"before"` // null when there was none
	After    json.RawMessage `json:"after"`
	Warnings []Warning       `json:"warnings"`
}

// Warning is a limit that is valid and does nothing, or not what it seems to.
type Warning struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Line   int    `json:"line"`
}

// Policies lists what the sources hold; empty function and source mean all.
func (c *Client) Policies(ctx context.Context, function, source string) ([]Policy, error) {
	var answer struct{ Policies []Policy }
	_, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/v1/policies", Query: given(
		"function", function, "source", source,
	)}, &answer)
	return answer.Policies, err
}

// Policy reads the policy written for exactly this function and version, or the
// one in force for it.
func (c *Client) Policy(ctx context.Context, function, version string, effective bool) (Policy, error) {
	var p Policy
	query := url.Values{}
	if effective {
		query.Set("effective", "true")
	}
	_, err := c.Do(ctx, Request{Method: http.MethodGet, Path: policyPath(function, version), Query: query}, &p)
	return p, err
}

// Write is a policy to be written.
type Write struct {
	Function, Version string
	Document          []byte // JSON
	// Revision is the one that the policy must have now, "0" for none; empty
	// means whichever.
	Revision string
	DryRun   bool // only tell what would change
}

// PutPolicy writes a policy. A conflict of revisions is a [*Problem] of status
// 409.
func (c *Client) PutPolicy(ctx context.Context, w Write) (Change, error) {
	query := given("revision", w.Revision)
	if w.DryRun {
		query.Set("dryRun", "true")
	}
	var change Change
	_, err := c.Do(ctx, Request{
		Method: http.MethodPut, Path: policyPath(w.Function, w.Version), Query: query,
		Body: Raw{ContentType: "application/json", Data: w.Document},
	}, &change)
	return change, err
}

// DeletePolicy removes a policy; an empty revision means whichever it has.
func (c *Client) DeletePolicy(ctx context.Context, function, version, revision string) error {
	_, err := c.Do(ctx, Request{
		Method: http.MethodDelete, Path: policyPath(function, version), Query: given("revision", revision),
	}, nil)
	return err
}

func policyPath(function, version string) string {
	return "/v1/policies" + Path(function, version)
}

// given is the pairs of name and value whose value is not empty.
func given(pairs ...string) url.Values {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	return query
}
