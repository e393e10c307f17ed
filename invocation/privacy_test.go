package invocation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/invocation/nvcfpb"
	"github.com/headgate-io/headgate/ratelimit"
)

// Whatever becomes of an invocation, whoever makes it is not found in the log,
// the metrics, an error, or in the answer that another caller could see.
func TestSubjectsAndAccountsStayPrivate(t *testing.T) {
	var log bytes.Buffer
	reg := prometheus.NewRegistry()
	logged := invocation.WithLogger(slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	outcomes := tellingOutcomes(t)
	next := 0
	g := openGate(t, &fakeDecider{answer: func(_ context.Context, inv ratelimit.Invocation) (ratelimit.Decision, error) {
		next++
		return outcomes[next%len(outcomes)](inv)
	}}, logged, invocation.WithRegisterer(reg))
	_, conn := serveGRPC(t, g, logged)
	client := nvcfpb.NewRateLimitServiceClient(conn)

	var answers strings.Builder
	// The secret part of each is "zq" and letters: nothing else here spells it.
	subjects := []string{
		"zqkim", "zqkim.account", "zqkim:acme:f", "zqkim/../x", "zq|kim", "zqkim=1,b", "zq kim", `zq"kim"`, "zq*", "zq>",
		"zqkim\n", "zq\x00", "zq\xff", strings.Repeat("zq", 200),
	}
	for _, who := range subjects {
		for range outcomes {
			account := "zqaccount" + who
			_, err := client.RateLimit(t.Context(), &nvcfpb.RateLimitRequest{
				NcaId: account, FunctionId: "f", FunctionVersionId: "v", ClientAuthSubject: who,
			})
			fmt.Fprintln(&answers, err)
			_, err = guarded(func() (ratelimit.Decision, error) {
				return g.Decide(t.Context(), ratelimit.Invocation{Function: "f", Subject: who, Cost: -1})
			})
			fmt.Fprintln(&answers, err)
			for _, r := range []*http.Request{
				httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/check",
					strings.NewReader(jsonOf(t, map[string]string{"function": "f", "account": account, "subject": who}))),
				{
					Method: http.MethodGet, URL: &url.URL{Path: "/v1/authorize/zqpath"}, Body: http.NoBody,
					Header: http.Header{"X-Headgate-Function": {"f"}, "X-Headgate-Account": {account}, "X-Headgate-Subject": {who}},
				},
			} {
				resp := ask(t, g, r)
				fmt.Fprintln(&answers, resp.Header, text(t, resp))
			}
		}
	}

	scrape := httptest.NewRecorder()
	promhttp.HandlerFor(reg, promhttp.HandlerOpts{}).ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	metrics, err := io.ReadAll(scrape.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(metrics), "headgate_panics_recovered_total") || !strings.Contains(log.String(), "panic") {
		t.Fatal("the panics were not told at all")
	}
	for name, told := range map[string]string{"log": log.String(), "metrics": string(metrics), "answers": answers.String()} {
		if at := strings.Index(told, "zq"); at >= 0 {
			t.Errorf("the %s give a caller away: …%s…", name, told[max(0, at-80):min(len(told), at+80)])
		}
	}
}

// tellingOutcomes are all that can become of an invocation; those that fail say
// whose it was.
func tellingOutcomes(t *testing.T) []func(ratelimit.Invocation) (ratelimit.Decision, error) {
	t.Helper()
	return []func(inv ratelimit.Invocation) (ratelimit.Decision, error){
		func(ratelimit.Invocation) (ratelimit.Decision, error) {
			return ratelimit.Decision{Outcome: ratelimit.Admitted}, nil
		},
		func(ratelimit.Invocation) (ratelimit.Decision, error) {
			return ratelimit.Decision{Tier: ratelimit.Subject, RetryAfter: 1, Rate: rate(t, "1-S")}, nil
		},
		func(inv ratelimit.Invocation) (ratelimit.Decision, error) {
			return ratelimit.Decision{}, fmt.Errorf("counter of %s and %s", inv.Account, inv.Subject)
		},
		func(inv ratelimit.Invocation) (ratelimit.Decision, error) { panic(inv.Account + inv.Subject) },
		func(inv ratelimit.Invocation) (ratelimit.Decision, error) { panic(errors.New(inv.Subject)) },
	}
}

// guarded is for a gate that is asked directly: its panics are the caller's.
func guarded(call func() (ratelimit.Decision, error)) (d ratelimit.Decision, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("panicked")
		}
	}()
	return call()
}

func jsonOf(t *testing.T, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
