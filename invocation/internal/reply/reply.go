// Package reply writes the JSON answers of all HTTP doors, so that they look
// alike.
package reply

import (
	"encoding/json"
	"net/http"
)

// JSON sends body in one piece, never to be cached. Bodies of ours always
// encode, and a caller that is gone does not need an answer, so there is no error
// to handle.
func JSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"error":{"code":"internal","message":"internal error"}}`)
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
}
