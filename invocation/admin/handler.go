package admin

import (
	"context"
	_ "embed" // the document of the API
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// requestTimeout bounds a request; none needs to wait for a person.
const requestTimeout = 10 * time.Second

// document is the OpenAPI description of the routes below; a test holds the
// two together.
//
//go:embed openapi.json
var document []byte

// handler serves the API over its parts.
type handler struct {
	parts Parts
	log   *slog.Logger
}

// route is one operation of the API. An error that it returns is answered.
type route struct {
	method, path string
	serve        func(http.ResponseWriter, *http.Request) error
}

func (h *handler) routes() []route {
	return []route{
		{http.MethodGet, "/v1/policies", h.listPolicies},
		{http.MethodGet, "/v1/policies/{function}/{version}", h.getPolicy},
		{http.MethodPut, "/v1/policies/{function}/{version}", h.putPolicy},
		{http.MethodDelete, "/v1/policies/{function}/{version}", h.deletePolicy},
		{http.MethodPost, "/v1/policies:validate", h.validatePolicies},
		{http.MethodGet, "/v1/counters", h.listCounters},
		{http.MethodGet, "/v1/counters/{key}", h.getCounter},
		{http.MethodPost, "/v1/counters/{key}/reset", h.resetCounter},
		{http.MethodPost, "/v1/counters/{key}/grant", h.grantCounter},
		{http.MethodGet, "/v1/status", h.status},
		{http.MethodGet, "/openapi.json", h.openAPI},
	}
}

// Register adds the API to mux, and an answer in JSON for all below /v1/ that
// is not in it. Whoever may reach mux may do everything: it belongs on a
// listener of its own. Requests that a browser makes for another site are
// refused. A nil log logs nothing. The error names the parts that are missing.
func Register(mux *http.ServeMux, parts Parts, log *slog.Logger) error {
	if err := parts.validate(); err != nil {
		return err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	h := &handler{parts: parts, log: log}
	allowed := make(map[string][]string)
	for _, rt := range h.routes() {
		mux.Handle(rt.method+" "+rt.path, h.wrap(rt.serve))
		allowed[rt.path] = append(allowed[rt.path], rt.method)
	}
	for path, methods := range allowed {
		mux.Handle(path, h.wrap(func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			return &problem{status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "ask with " + strings.Join(methods, " or ")}
		}))
	}
	mux.Handle("/v1/", h.wrap(func(http.ResponseWriter, *http.Request) error {
		return &problem{status: http.StatusNotFound, Code: "not_found", Message: "no such path; see /openapi.json"}
	}))
	return nil
}

// wrap bounds a request, answers its error, and survives its panic.
func (h *handler) wrap(serve func(http.ResponseWriter, *http.Request) error) http.Handler {
	guard := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if value := recover(); value != nil {
				// It may hold what the caller sent, so only its type is told.
				h.log.Error("recovered from a panic",
					"in", r.Pattern, "type", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
				internal().write(w)
			}
		}()
		if guard.Check(r) != nil {
			(&problem{status: http.StatusForbidden, Code: "cross_origin", Message: "asked by another site"}).write(w)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
		defer cancel()
		if err := serve(w, r.WithContext(ctx)); err != nil {
			h.problemOf(r.Pattern, err).write(w)
		}
	})
}

func (h *handler) openAPI(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(document) // a caller that is gone needs no answer
	return nil
}
