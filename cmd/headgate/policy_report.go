package main

import (
	"io"
	"time"

	"github.com/headgate-io/headgate/cmd/headgate/internal/output"
	"github.com/headgate-io/headgate/ratelimit/policy/replay"
)

// replayReport is a [replay.Result] for programs.
type replayReport struct {
	Invocations   int64         `json:"invocations"`
	OutOfOrder    int64         `json:"outOfOrder"`
	From          time.Time     `json:"from"`
	To            time.Time     `json:"to"`
	Proposed      replayTotals  `json:"proposed"`
	InForce       replayTotals  `json:"inForce"`
	NewlyDenied   int64         `json:"newlyDenied"`
	NewlyAdmitted int64         `json:"newlyAdmitted"`
	Groups        []deniedGroup `json:"groups"`
	Denials       []deniedCall  `json:"denials"`
}

type replayTotals struct {
	Admitted   int64 `json:"admitted"`
	Denied     int64 `json:"denied"`
	Impossible int64 `json:"impossible"`
	Refused    int64 `json:"refused"`
	Unlimited  int64 `json:"unlimited"`
	Unenforced int64 `json:"unenforced"`
}

// deniedGroup is the denials of one account by one rate of one policy.
type deniedGroup struct {
	Account  string    `json:"account"`
	Function string    `json:"function"`
	Version  string    `json:"version"`
	Tier     string    `json:"tier"`
	Rate     string    `json:"rate"`
	Enforced bool      `json:"enforced"`
	Denied   int64     `json:"denied"`
	New      int64     `json:"new"` // admitted by the policies in force
	First    time.Time `json:"first"`
	Last     time.Time `json:"last"`
}

// deniedCall is one invocation that the proposed policies would have denied.
type deniedCall struct {
	Line       int       `json:"line"` // of the log
	Time       time.Time `json:"time"`
	Account    string    `json:"account"`
	Function   string    `json:"function"`
	Version    string    `json:"version"`
	Cost       int64     `json:"cost"`
	Outcome    string    `json:"outcome"`
	Tier       string    `json:"tier"`
	Rate       string    `json:"rate"`
	RetryAfter float64   `json:"retryAfter"` // seconds
	InForce    string    `json:"inForce"`    // the outcome under the policies in force
}

func reportOf(r *replay.Result) replayReport {
	report := replayReport{
		Invocations: r.Invocations, OutOfOrder: r.OutOfOrder, From: r.From, To: r.To,
		Proposed: replayTotals(r.Proposed), InForce: replayTotals(r.InForce),
		NewlyDenied: r.NewlyDenied, NewlyAdmitted: r.NewlyAdmitted,
		Groups: []deniedGroup{}, Denials: []deniedCall{},
	}
	for _, g := range r.Groups {
		report.Groups = append(report.Groups, deniedGroup{
			Account: g.Account, Function: g.Function, Version: g.Version, Tier: g.Tier.String(), Rate: g.Rate.String(),
			Enforced: g.Enforced, Denied: g.Denied, New: g.New, First: g.First, Last: g.Last,
		})
	}
	for _, d := range r.Denials {
		report.Denials = append(report.Denials, deniedCall{
			Line: d.Line, Time: d.Time, Account: d.Account, Function: d.Function, Version: d.Version, Cost: d.Cost,
			Outcome: outcomeOf(d.Proposed), Tier: d.Proposed.Tier.String(), Rate: d.Proposed.Rate.String(),
			RetryAfter: d.Proposed.RetryAfter.Seconds(), InForce: outcomeOf(d.InForce),
		})
	}
	return report
}

func outcomeOf(v replay.Verdict) string {
	if v.Refused {
		return "refused" // it has no account, and the policy counts by it
	}
	return v.Outcome.String()
}

func tableOfReport(w io.Writer, r replayReport) {
	output.Row(w, "invocations", r.Invocations)
	if r.OutOfOrder > 0 {
		output.Row(w, "out of order", r.OutOfOrder)
	}
	if r.Invocations > 0 {
		output.Row(w, "from", stamp(r.From))
		output.Row(w, "to", stamp(r.To))
	}
	output.Row(w, "newly denied", r.NewlyDenied)
	output.Row(w, "newly admitted", r.NewlyAdmitted)
	blank(w)
	output.Row(w, "", "ADMITTED", "DENIED", "IMPOSSIBLE", "REFUSED", "UNLIMITED", "NOT ENFORCED")
	for _, t := range []struct {
		name string
		replayTotals
	}{{"proposed", r.Proposed}, {"in force", r.InForce}} {
		output.Row(w, t.name, t.Admitted, t.Denied, t.Impossible, t.Refused, t.Unlimited, t.Unenforced)
	}
	tableOfGroups(w, r.Groups)
	tableOfDenials(w, r.Denials)
}

func tableOfGroups(w io.Writer, groups []deniedGroup) {
	if len(groups) == 0 {
		return
	}
	blank(w)
	output.Row(w, "DENIED", "NEW", "ACCOUNT", "FUNCTION", "VERSION", "TIER", "RATE", "FIRST", "LAST")
	for _, g := range groups {
		output.Row(w, g.Denied, g.New, orDash(g.Account), g.Function, g.Version, g.Tier, g.Rate, stamp(g.First), stamp(g.Last))
	}
}

func tableOfDenials(w io.Writer, denials []deniedCall) {
	if len(denials) == 0 {
		return
	}
	blank(w)
	output.Row(w, "LINE", "TIME", "ACCOUNT", "FUNCTION", "VERSION", "OUTCOME", "BY", "RETRY AFTER", "IN FORCE")
	for _, d := range denials {
		output.Row(w, d.Line, stamp(d.Time), orDash(d.Account), d.Function, orDash(d.Version),
			d.Outcome, d.Tier+" "+d.Rate, seconds(d.RetryAfter), d.InForce)
	}
}

// stamp is an instant for people, in UTC as logs are.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
