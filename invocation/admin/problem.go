package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/headgate-io/headgate/invocation/internal/reply"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// problem is why a request failed.
type problem struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Field   string  `json:"field,omitempty"`
	Faults  []fault `json:"faults,omitempty"` // of a policy, all of them
	// Revision is where a policy is, when it is not where it was expected.
	Revision string `json:"revision,omitempty"`

	status int
}

func (p *problem) Error() string { return p.Message }

// invalid is a request that is wrong in one field.
func invalid(field, reason string) *problem {
	return &problem{
		status: http.StatusBadRequest, Code: "invalid", Field: field, Message: field + ": " + reason,
	}
}

func internal() *problem {
	return &problem{status: http.StatusInternalServerError, Code: "internal", Message: "internal error"}
}

// problemOf translates an error. One that nobody foresaw is told by its place
// and kind only: its text might speak of an account.
func (h *handler) problemOf(where string, err error) *problem {
	var p *problem
	var conflict *ConflictError
	var nodes *NodesError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &conflict):
		return conflictProblem(conflict.Current)
	case errors.As(err, &nodes) && errors.Is(err, ratelimit.ErrUnavailable):
		return &problem{status: http.StatusServiceUnavailable, Code: "nodes", Message: "nothing was reset; " + nodes.Error()}
	case errors.Is(err, ErrConflict):
		return &problem{
			status: http.StatusConflict, Code: "conflict", Field: "revision",
			Message: "somebody else changed the policy meanwhile; read it again",
		}
	case errors.Is(err, ErrNotFound):
		return &problem{status: http.StatusNotFound, Code: "not_found", Message: "there is none"}
	case errors.Is(err, ErrNoStore):
		return &problem{status: http.StatusNotImplemented, Code: "no_store", Message: ErrNoStore.Error()}
	case errors.As(err, &tooLarge):
		return &problem{
			status: http.StatusRequestEntityTooLarge, Code: "too_large",
			Message: fmt.Sprintf("the body must be at most %d bytes", tooLarge.Limit),
		}
	case errors.Is(err, policy.ErrPolicy):
		return &problem{
			status: http.StatusBadRequest, Code: "invalid_policy", Message: "the policy is not valid", Faults: faultsOf(err),
		}
	case errors.Is(err, ratelimit.ErrUnavailable), errors.Is(err, ratelimit.ErrNewerFormat):
		return &problem{status: http.StatusServiceUnavailable, Code: "unavailable", Message: "the store is away"}
	case errors.Is(err, ratelimit.ErrUnknown), errors.Is(err, context.DeadlineExceeded):
		return &problem{
			status: http.StatusGatewayTimeout, Code: "timeout", Message: "no answer in time; it may have been done, or not",
		}
	case errors.Is(err, context.Canceled):
		return &problem{status: http.StatusGatewayTimeout, Code: "canceled", Message: "the caller gave up"}
	default:
		h.log.Error("admin request failed", "in", where, "type", fmt.Sprintf("%T", innermost(err)))
		return internal()
	}
}

func innermost(err error) error {
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return err
}

func conflictProblem(current uint64) *problem {
	p := &problem{status: http.StatusConflict, Code: "conflict", Field: "revision", Message: "there is no such policy"}
	if current != 0 {
		p.Revision = strconv.FormatUint(current, 10)
		p.Message = fmt.Sprintf("the policy is at revision %s; read it again", p.Revision)
	}
	return p
}

func (p *problem) write(w http.ResponseWriter) {
	reply.JSON(w, p.status, struct {
		Error *problem `json:"error"`
	}{p})
}

// fault is one thing wrong in a policy document.
type fault struct {
	Path   string `json:"path"`
	Value  string `json:"value"`
	Reason string `json:"reason"`
	Line   int    `json:"line"`
}

func faultsOf(err error) []fault {
	faults := []fault{}
	for _, f := range policy.Faults(err) {
		faults = append(faults, fault{Path: f.Path, Value: f.Value, Reason: f.Reason, Line: f.Line})
	}
	return faults
}
