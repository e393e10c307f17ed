package invocation

import (
	"context"
	"errors"
	"net/http"

	"github.com/headgate-io/headgate/invocation/internal/reply"
	"github.com/headgate-io/headgate/ratelimit"
)

// Problem is why a request got no decision, as the JSON API tells it.
type Problem struct {
	Code    string `json:"code"`            // from a closed set, for programs: "invalid", "not_ready"
	Message string `json:"message"`         // for people
	Field   string `json:"field,omitempty"` // the field at fault, where it is one

	status int
}

// Codes of a [Problem].
const (
	codeInvalid  = "invalid"
	codeTooLarge = "too_large"
	codeMethod   = "method_not_allowed"
	codeNotFound = "not_found"
	codeNotReady = "not_ready"
	codeTimeout  = "timeout"
	codeInternal = "internal"
	codeLimited  = "rate_limited"
)

// problemOf translates what [Gate.Decide] returned, with fields named by n.
// Nothing but a field's error speaks of the request, and no error of another
// package is repeated: it might.
func problemOf(err error, n names) Problem {
	var field *ratelimit.FieldError
	switch {
	case errors.As(err, &field):
		wire := n.rename(field)
		return Problem{Code: codeInvalid, Message: wire.Error(), Field: wire.Field, status: http.StatusBadRequest}
	case errors.Is(err, ErrNotReady):
		return Problem{Code: codeNotReady, Message: "this node is not ready yet", status: http.StatusServiceUnavailable}
	case errors.Is(err, ErrClosed), errors.Is(err, ratelimit.ErrStopped):
		return Problem{Code: codeNotReady, Message: "this node is leaving", status: http.StatusServiceUnavailable}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return Problem{Code: codeTimeout, Message: "no decision in time", status: http.StatusGatewayTimeout}
	default:
		return Problem{Code: codeInternal, Message: "internal error", status: http.StatusInternalServerError}
	}
}

// write sends the problem as {"error": {...}}.
func (p Problem) write(w http.ResponseWriter) {
	if p.status == http.StatusServiceUnavailable {
		w.Header().Set(headerRetryAfter, "1")
	}
	reply.JSON(w, p.status, struct {
		Error Problem `json:"error"`
	}{p})
}
