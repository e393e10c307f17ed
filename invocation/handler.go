package invocation

import (
	"errors"
	"net/http"
	"strings"

	"github.com/headgate-io/headgate/invocation/internal/reply"
	"github.com/headgate-io/headgate/ratelimit"
)

// handler serves the JSON API over a gate.
type handler struct{ gate *Gate }

// NewHandler registers the HTTP front door of gate on mux and returns the
// handler to serve; a platform may register paths of its own beside it. A nil
// mux stands for a new one.
//
//	POST /v1/check      an invocation as JSON; 200 with an [Answer], denied or not
//	any  /v1/authorize  an invocation in X-Headgate-… header fields, for proxies
//	                    that ask before they forward; 200 or 429, with an [Answer]
//
// A path below /v1/authorize/ is the same, for proxies that append their own.
// What gets no decision is answered with {"error": [Problem]}: 400 with the
// field at fault, 413 above [MaxBodyBytes], 503 until the gate is open, 504
// when no decision was made in time.
func NewHandler(gate *Gate, mux *http.ServeMux) http.Handler {
	if mux == nil {
		mux = http.NewServeMux()
	}
	h := &handler{gate: gate}
	mux.HandleFunc("/v1/check", h.check)
	mux.HandleFunc("/v1/authorize", h.authorize)
	mux.HandleFunc("/v1/authorize/", h.authorize)
	return gate.recovering(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" {
			notFound(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

func (h *handler) check(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		Problem{
			Code: codeMethod, Message: "ask with POST", status: http.StatusMethodNotAllowed,
		}.write(w)
		return
	}
	inv, err := readInvocation(http.MaxBytesReader(w, r.Body, MaxBodyBytes))
	if err != nil {
		h.gate.metrics.invalid.Inc()
		bodyProblem(err).write(w)
		return
	}
	d, err := h.gate.Decide(r.Context(), inv)
	if err != nil {
		problemOf(err, plainNames).write(w)
		return
	}
	h.answer(w, r, inv, d, http.StatusOK)
}

func (h *handler) authorize(w http.ResponseWriter, r *http.Request) {
	inv, err := headerInvocation(r.Header)
	if err != nil {
		h.gate.metrics.invalid.Inc()
		problemOf(err, headerNames).write(w)
		return
	}
	d, err := h.gate.Decide(r.Context(), inv)
	if err != nil {
		problemOf(err, headerNames).write(w)
		return
	}
	status := http.StatusOK
	if !d.Allowed() {
		status = http.StatusTooManyRequests
	}
	h.answer(w, r, inv, d, status)
}

func (h *handler) answer(
	w http.ResponseWriter, r *http.Request, inv ratelimit.Invocation, d ratelimit.Decision, status int,
) {
	standings := h.gate.Standings(r.Context(), inv)
	setHeaders(w.Header(), d, standings)
	reply.JSON(w, status, answerOf(d, standings))
}

// bodyProblem translates what readInvocation returned.
func bodyProblem(err error) Problem {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.Is(err, ratelimit.ErrInvalid):
		return problemOf(err, plainNames)
	case errors.As(err, &tooLarge):
		return Problem{
			Code: codeTooLarge, Message: "the body must be at most 64 KiB", status: http.StatusRequestEntityTooLarge,
		}
	case errors.Is(err, errBody):
		return Problem{Code: codeInvalid, Message: err.Error(), status: http.StatusBadRequest}
	default:
		return Problem{Code: codeInvalid, Message: "the body could not be read", status: http.StatusBadRequest}
	}
}

func notFound(w http.ResponseWriter, r *http.Request) {
	message := "there is nothing here; ask POST /v1/check"
	if strings.HasPrefix(r.URL.Path, "/v1/") {
		message = "no such path; ask POST /v1/check or /v1/authorize"
	}
	Problem{Code: codeNotFound, Message: message, status: http.StatusNotFound}.write(w)
}
