package invocation_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// oncePerHour is a decider for the example; a platform has a ratelimit.Limiter.
type oncePerHour struct{ spent bool }

func (o *oncePerHour) Decide(context.Context, ratelimit.Invocation) (ratelimit.Decision, error) {
	if o.spent {
		hourly := counter.Rate{Units: 1, Period: 3600e9}
		return ratelimit.Decision{Tier: ratelimit.Account, Rate: hourly, RetryAfter: 1800e9}, nil
	}
	o.spent = true
	return ratelimit.Decision{Outcome: ratelimit.Admitted}, nil
}

func (o *oncePerHour) Standings(context.Context, ratelimit.Invocation) []ratelimit.Standing {
	return nil
}

// A platform puts the gate before its own handler.
func ExampleGate_Middleware() {
	gate, err := invocation.NewGate(&oncePerHour{})
	if err != nil {
		fmt.Println(err)
		return
	}
	gate.Open() // once the node is ready

	fromRequest := func(r *http.Request) ratelimit.Invocation {
		return ratelimit.Invocation{Account: r.Header.Get("X-Account"), Function: r.PathValue("function")}
	}
	runFunction := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "it ran") })
	mux := http.NewServeMux()
	mux.Handle("/invoke/{function}", gate.Middleware(fromRequest)(runFunction))

	for range 2 {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/invoke/resize", nil))
		fmt.Print(w.Code, " ", w.Header().Get("Retry-After"), " ", w.Body)
	}
	// Output:
	// 200  it ran
	// 429 1800 {"error":{"code":"rate_limited","message":"limited by the account rate 1-H"}}
}
