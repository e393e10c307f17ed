package invocation

import (
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/headgate-io/headgate/ratelimit"
)

// Middleware lets a request through to the next handler when the gate admits
// the invocation that of makes of it; a Cost of 0 counts as 1, because the next
// handler runs.
//
// A denied request is answered 429 with Retry-After (whole seconds, at least
// 1), one that cannot be decided 400 with the field at fault, and 503 while the
// gate is not open, all as {"error": [Problem]}. Answers of both kinds carry
// RateLimit and RateLimit-Policy.
func (g *Gate) Middleware(of func(*http.Request) ratelimit.Invocation) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			inv := of(r)
			if inv.Cost == 0 {
				inv.Cost = 1
			}
			d, err := g.Decide(r.Context(), inv)
			if err != nil {
				problemOf(err, plainNames).write(w)
				return
			}
			setHeaders(w.Header(), d, g.Standings(r.Context(), inv))
			if !d.Allowed() {
				limited(d).write(w)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// limited tells a denied caller what denied it.
func limited(d ratelimit.Decision) Problem {
	message := fmt.Sprintf("limited by the %s rate %s", d.Tier, d.Rate)
	if d.Outcome == ratelimit.Impossible {
		message = fmt.Sprintf("the cost is above the %s rate %s", d.Tier, d.Rate)
	}
	return Problem{Code: codeLimited, Message: message, status: http.StatusTooManyRequests}
}

// recovering answers a request whose handler panicked, and says where. The
// panic's value may hold what the caller sent, so only its type is logged.
func (g *Gate) recovering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			value := recover()
			if value == nil {
				return
			}
			if err, ok := value.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(value) // how net/http is told to drop the connection
			}
			g.panicked(r.Pattern, value) // not the path: that is the caller's
			Problem{
				Code: codeInternal, Message: "internal error", status: http.StatusInternalServerError,
			}.write(w)
		}()
		next.ServeHTTP(w, r)
	})
}

func (g *Gate) panicked(where string, value any) {
	g.metrics.panics.Inc()
	g.logger.Error("recovered from a panic",
		"in", where, "type", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
}
