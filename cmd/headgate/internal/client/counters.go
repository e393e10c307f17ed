package client

import (
	"context"
	"net/http"
	"strconv"

	"github.com/headgate-io/headgate/invocation/admin"
)

// Counter is one counter as it stands.
type Counter struct {
	Key      string `json:"key"`
	Function string `json:"function"`
	Version  string `json:"version"` // of the policy; "*" counts all versions together
	Tier     string `json:"tier"`
	// Identity is the account, the hash of a subject, or empty for the whole
	// function.
	Identity string  `json:"identity"`
	InForce  bool    `json:"inForce"` // a policy counts with it
	Limits   []Limit `json:"limits"`
}

// Limit is how one rate of a counter stands.
type Limit struct {
	Rate      string   `json:"rate"`
	Spent     int64    `json:"spent"`
	Remaining int64    `json:"remaining"`
	NextUnit  *float64 `json:"nextUnit"` // seconds; null: never
	FullIn    float64  `json:"fullIn"`   // seconds
}

// CounterDetail is a counter with the leases that nodes hold on it.
type CounterDetail struct {
	Counter
	Leases []Lease `json:"leases"`
	// Silent are the nodes that do not say whether they hold any.
	Silent []string `json:"silent"`
}

// Lease is units of a counter that a node may admit on its own.
type Lease struct {
	Node  string  `json:"node"`
	Units int64   `json:"units"`
	Until float64 `json:"until"` // seconds from now
}

// CounterQuery says which counters; only Function is required.
type CounterQuery struct {
	Function, Version, Tier, Account, Subject string

	Limit int // at most so many; 0 is the server's default
}

// CounterList is the answer to a query.
type CounterList struct {
	Counters []Counter `json:"counters"`
	More     bool      `json:"more"` // the list was cut off at its limit
}

// Counters lists the counters that a query matches.
func (c *Client) Counters(ctx context.Context, q CounterQuery) (CounterList, error) {
	query := given("function", q.Function, "version", q.Version, "tier", q.Tier, "account", q.Account, "subject", q.Subject)
	if q.Limit > 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	var list CounterList
	_, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/v1/counters", Query: query}, &list)
	return list, err
}

// Counter reads one counter.
func (c *Client) Counter(ctx context.Context, key string) (CounterDetail, error) {
	return c.counter(ctx, Request{Method: http.MethodGet, Path: counterPath(key)})
}

// ResetCounter revokes all leases on a counter and forgets what was spent.
func (c *Client) ResetCounter(ctx context.Context, key string) (CounterDetail, error) {
	return c.counter(ctx, Request{Method: http.MethodPost, Path: counterPath(key) + "/reset"})
}

// GrantCounter adds units to a counter in the current window.
func (c *Client) GrantCounter(ctx context.Context, key string, units int64) (CounterDetail, error) {
	return c.counter(ctx, Request{
		Method: http.MethodPost, Path: counterPath(key) + "/grant",
		Body: struct {
			Units int64 `json:"units"`
		}{units},
	})
}

func (c *Client) counter(ctx context.Context, r Request) (CounterDetail, error) {
	var d CounterDetail
	_, err := c.Do(ctx, r, &d)
	return d, err
}

func counterPath(key string) string { return "/v1/counters" + Path(key) }

// Status is how the node and those it knows are doing.
func (c *Client) Status(ctx context.Context) (admin.Status, error) {
	var s admin.Status
	_, err := c.Do(ctx, Request{Method: http.MethodGet, Path: "/v1/status"}, &s)
	return s, err
}
