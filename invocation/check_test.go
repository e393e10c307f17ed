package invocation_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// checkCase is a decision and the answer that tells it.
type checkCase struct {
	name    string
	decider *fakeDecider
	body    string
	headers [3]string // RateLimit-Policy, RateLimit, Retry-After
}

func checkCases(t *testing.T) []checkCase {
	t.Helper()
	hourly, perSecond := rate(t, "10-H"), rate(t, "5-S")
	leased := &ratelimit.Policy{Revision: "7"}
	standing := ratelimit.Standing{Tier: ratelimit.Account, Rate: hourly, Remaining: 6, Reset: 29500 * time.Millisecond}
	caller := ratelimit.Standing{Tier: ratelimit.Subject, Rate: perSecond, Remaining: 4, Reset: time.Second}
	daily := ratelimit.Standing{
		Tier: ratelimit.Account, Rate: counter.Rate{Units: counter.MaxUnits, Period: 24 * time.Hour},
		Remaining: counter.MaxUnits,
	}
	return []checkCase{
		{
			"no policy, no limit",
			decides(ratelimit.Decision{Outcome: ratelimit.Admitted, Remaining: ratelimit.Unlimited}),
			`{"allowed":true,"outcome":"admitted","limitedBy":null,"remaining":null,"retryAfter":null,` +
				`"limits":[],"mode":"none","degraded":false,"policyRevision":""}`,
			[3]string{},
		},
		{
			"admitted",
			decides(ratelimit.Decision{Outcome: ratelimit.Admitted, Remaining: 6, Policy: leased}, standing),
			`{"allowed":true,"outcome":"admitted","limitedBy":null,"remaining":6,"retryAfter":null,` +
				`"limits":[{"tier":"account","rate":"10-H","remaining":6,"reset":29.5}],` +
				`"mode":"leased","degraded":false,"policyRevision":"7"}`,
			[3]string{`"account";q=10;w=3600`, `"account";r=6;t=30`},
		},
		{
			"denied",
			decides(ratelimit.Decision{
				Tier: ratelimit.Account, Rate: hourly, RetryAfter: 1200 * time.Millisecond, Degraded: true,
				Policy: &ratelimit.Policy{Consistency: ratelimit.Exact},
			}, caller, standing),
			`{"allowed":false,"outcome":"denied","limitedBy":{"tier":"account","rate":"10-H"},"remaining":0,` +
				`"retryAfter":1.2,"limits":[{"tier":"subject","rate":"5-S","remaining":4,"reset":1},` +
				`{"tier":"account","rate":"10-H","remaining":6,"reset":29.5}],` +
				`"mode":"exact","degraded":true,"policyRevision":""}`,
			[3]string{`"subject";q=5;w=1, "account";q=10;w=3600`, `"subject";r=4;t=1, "account";r=6;t=30`, "2"},
		},
		{
			"denied for a nanosecond, two rates in a tier, a number no header can hold",
			decides(ratelimit.Decision{Tier: ratelimit.Account, Rate: hourly, RetryAfter: 1, Policy: leased}, standing, daily),
			`{"allowed":false,"outcome":"denied","limitedBy":{"tier":"account","rate":"10-H"},"remaining":0,` +
				`"retryAfter":1e-9,"limits":[{"tier":"account","rate":"10-H","remaining":6,"reset":29.5},` +
				`{"tier":"account","rate":"9007199254740992-D","remaining":9007199254740992,"reset":0}],` +
				`"mode":"leased","degraded":false,"policyRevision":"7"}`,
			[3]string{
				`"account-10-H";q=10;w=3600, "account-9007199254740992-D";q=999999999999999;w=86400`,
				`"account-10-H";r=6;t=30, "account-9007199254740992-D";r=999999999999999;t=0`, "1",
			},
		},
		{
			"impossible: no use in waiting",
			decides(ratelimit.Decision{Outcome: ratelimit.Impossible, Tier: ratelimit.Total, Rate: hourly, Policy: leased}),
			`{"allowed":false,"outcome":"impossible","limitedBy":{"tier":"total","rate":"10-H"},"remaining":0,` +
				`"retryAfter":null,"limits":[],"mode":"leased","degraded":false,"policyRevision":"7"}`,
			[3]string{},
		},
		{
			"denied but not enforced",
			decides(ratelimit.Decision{
				Tier: ratelimit.Account, Rate: hourly, RetryAfter: time.Second, Policy: &ratelimit.Policy{Shadow: true},
			}),
			`{"allowed":true,"outcome":"denied","limitedBy":{"tier":"account","rate":"10-H"},"remaining":0,` +
				`"retryAfter":1,"limits":[],"mode":"leased","degraded":false,"policyRevision":""}`,
			[3]string{},
		},
	}
}

func TestCheckAnswers(t *testing.T) {
	for _, c := range checkCases(t) {
		t.Run(c.name, func(t *testing.T) {
			resp := post(t, openGate(t, c.decider), acmeBody)
			if got := text(t, resp); resp.StatusCode != http.StatusOK || got != c.body {
				t.Errorf("%d %s\nwant 200 %s", resp.StatusCode, got, c.body)
			}
			for i, name := range []string{"RateLimit-Policy", "RateLimit", "Retry-After"} {
				if got := resp.Header.Get(name); got != c.headers[i] {
					t.Errorf("%s: %s\nwant %s", name, got, c.headers[i])
				}
			}
		})
	}
}
