package reply_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate-io/headgate/invocation/internal/reply"
)

// An answer comes whole, or it is one that says that we failed.
func TestJSON(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		body   any
		status int
		want   string
	}{
		{"an answer", map[string]int{"units": 3}, http.StatusAccepted, `{"units":3}`},
		{"none", nil, http.StatusAccepted, `null`},
		{"what does not encode", func() {}, http.StatusInternalServerError, `{"error":{"code":"internal","message":"internal error"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			reply.JSON(w, http.StatusAccepted, c.body)
			if w.Code != c.status || w.Body.String() != c.want+"\n" {
				t.Errorf("%d %q, want %d %s", w.Code, w.Body, c.status, c.want)
			}
			for field, want := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"} {
				if got := w.Header().Get(field); got != want {
					t.Errorf("%s: %q, want %q", field, got, want)
				}
			}
		})
	}
}
