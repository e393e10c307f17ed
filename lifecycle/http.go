package lifecycle

import (
	"encoding/json"
	"net/http"
)

// Livez answers 200 with the state: the process works, whatever it waits for.
// Restarting it would mend neither a store that is away nor a drain.
func (n *Node) Livez(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, n.State())
}

// Readyz answers 200 while callers should be sent here and 503 while they
// should not, either way with the phase and the failing checks.
func (n *Node) Readyz(w http.ResponseWriter, _ *http.Request) {
	state := n.State()
	code := http.StatusOK
	if !state.Ready {
		code = http.StatusServiceUnavailable
	}
	answer(w, code, state)
}

// Register adds GET /livez and GET /readyz to mux.
func (n *Node) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /livez", n.Livez)
	mux.HandleFunc("GET /readyz", n.Readyz)
}

func answer(w http.ResponseWriter, code int, state State) {
	body, err := json.Marshal(state)
	if err != nil { // strings, booleans and a phase always marshal
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	// A caller that hung up has nothing to be told.
	_, _ = w.Write(append(body, '\n'))
}
