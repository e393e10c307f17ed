package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/cmd/headgate/internal/client"
	"github.com/headgate-io/headgate/cmd/headgate/internal/output"
	"github.com/headgate-io/headgate/invocation"
)

// invocationFlags is an invocation as POST /v1/check takes it.
type invocationFlags struct {
	Account  string `json:"account,omitempty"`
	Function string `json:"function"`
	Version  string `json:"version,omitempty"`
	Subject  string `json:"subject,omitempty"`
	Cost     int64  `json:"cost"`
}

const checkLong = `Ask a running headgate whether an invocation is allowed, and charge it if it is.

--cost 0 looks without charging. --expect denied turns the exit codes 0 and 1
round, for scripts that want a denial. --wait asks again while there is no
answer; an answer that was lost on its way may have been charged.

Exit codes:
  0  allowed (or as expected)
  1  denied (or not as expected)
  2  wrong usage, or no answer`

const checkExample = `  headgate check --account acme --function resize --version v1
  headgate check --account acme --function resize --version v1 --cost 0 -o json`

func newCheck(s streams) *cobra.Command {
	var inv invocationFlags
	var format output.Format
	var server serverFlags
	var expect string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:     "check",
		Short:   "Ask whether an invocation is allowed",
		Long:    checkLong,
		Example: checkExample,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if expect != expectAllowed && expect != expectDenied {
				return fmt.Errorf("--expect %q: must be %s or %s", expect, expectAllowed, expectDenied)
			}
			ask, err := server.client()
			if err != nil {
				return err
			}
			a, err := askUntil(c.Context(), ask, inv, wait)
			if err != nil {
				return err
			}
			if err := format.Print(c.OutOrStdout(), a, func(w io.Writer) { tableOfAnswer(w, a) }); err != nil {
				return err
			}
			if a.Allowed != (expect == expectAllowed) {
				return &codeError{Code: exitDenied}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&inv.Account, "account", "", "who pays")
	f.StringVar(&inv.Function, "function", "", "the function (required)")
	f.StringVar(&inv.Version, "version", "", "the function's version")
	f.StringVar(&inv.Subject, "subject", "", "the individual caller, if there is one")
	f.Int64Var(&inv.Cost, "cost", 1, "units; 0 looks without charging")
	f.StringVar(&expect, "expect", expectAllowed, "`answer` to exit 0 for: allowed or denied")
	f.DurationVar(&wait, "wait", 0, "how long to ask again while there is no answer")
	_ = cmd.MarkFlagRequired("function") // the flag is defined above
	server.add(f, s.env(checkServerEnv), checkServerEnv, defaultHTTP, "HTTP front door")
	addOutput(cmd, &format)
	return cmd
}

// What --expect may be.
const (
	expectAllowed = "allowed"
	expectDenied  = "denied"
)

// askAgainEvery is the time between two questions of --wait.
const askAgainEvery = 250 * time.Millisecond

// askUntil asks until there is an answer or a refusal of the question, for as
// long as wait.
func askUntil(ctx context.Context, ask *client.Client, inv invocationFlags, wait time.Duration) (invocation.Answer, error) {
	patience := time.NewTimer(wait)
	defer patience.Stop()
	again := time.NewTicker(askAgainEvery)
	defer again.Stop()
	for {
		var a invocation.Answer
		_, err := ask.Do(ctx, client.Request{Method: http.MethodPost, Path: "/v1/check", Body: inv}, &a)
		var refused *client.Problem
		if err == nil || wait == 0 || errors.As(err, &refused) && refused.Status < http.StatusInternalServerError {
			return a, err
		}
		select {
		case <-again.C:
		case <-patience.C:
			return a, err
		case <-ctx.Done():
			return a, err
		}
	}
}

func tableOfAnswer(w io.Writer, a invocation.Answer) {
	output.Row(w, "allowed", output.YesNo(a.Allowed))
	if a.LimitedBy != nil {
		output.Row(w, "limited by", a.LimitedBy.Tier+" "+a.LimitedBy.Rate)
	}
	if a.RetryAfter != nil {
		output.Row(w, "retry after", seconds(*a.RetryAfter))
	}
	if a.LimitedBy != nil && a.RetryAfter == nil {
		output.Row(w, "retry after", "never: the cost is above the limit")
	}
	output.Row(w, "remaining", remaining(a.Remaining))
	output.Row(w, "mode", a.Mode)
	output.Row(w, "degraded", output.YesNo(a.Degraded))
	if len(a.Limits) == 0 {
		return
	}
	blank(w)
	output.Row(w, "TIER", "RATE", "REMAINING", "FULL IN")
	for _, l := range a.Limits {
		output.Row(w, l.Tier, l.Rate, l.Remaining, seconds(l.Reset))
	}
}

func remaining(n *int64) string {
	if n == nil {
		return "unlimited"
	}
	return strconv.FormatInt(*n, 10)
}

// seconds is a span for people: fractions matter only when it is short.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(time.Millisecond).String()
}
