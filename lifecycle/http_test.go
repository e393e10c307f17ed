package lifecycle

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func get(h http.Handler, path string) (int, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestNode_answers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := failing()
		n := startNode(t, DefaultConfig(), []Check{{"store", store.probe}})
		mux := http.NewServeMux()
		n.Register(mux)
		expect := func(path string, code int, body string) {
			t.Helper()
			if gotCode, gotBody := get(mux, path); gotCode != code || gotBody != body {
				t.Errorf("%s: %d %s, want %d %s", path, gotCode, gotBody, code, body)
			}
		}
		const away = `"failing":[{"check":"store","reason":"store is away"}]}`

		time.Sleep(time.Second)
		expect("/readyz", 503, `{"phase":"joining","ready":false,"degraded":false,`+away)
		expect("/livez", 200, `{"phase":"joining","ready":false,"degraded":false,`+away)

		store.bad.Store(false)
		time.Sleep(time.Second)
		expect("/readyz", 200, `{"phase":"ready","ready":true,"degraded":false}`)

		store.bad.Store(true)
		time.Sleep(time.Second)
		expect("/readyz", 200, `{"phase":"ready","ready":true,"degraded":true,`+away)

		store.bad.Store(false)
		time.Sleep(time.Second)
		n.Drain()
		expect("/readyz", 503, `{"phase":"draining","ready":false,"degraded":false}`)
		expect("/livez", 200, `{"phase":"draining","ready":false,"degraded":false}`)
		stopNode(t, n)
		expect("/readyz", 503, `{"phase":"stopped","ready":false,"degraded":false}`)
	})
}

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		n := startNode(t, DefaultConfig(), nil, WithRegisterer(reg))
		defer stopNode(t, n)
		time.Sleep(time.Second)

		problems, err := testutil.GatherAndLint(reg)
		if err != nil || len(problems) != 0 {
			t.Fatalf("lint: %v %v", problems, err)
		}
		want := `
# HELP headgate_phase 1 for the phase that the node is in, 0 for the others.
# TYPE headgate_phase gauge
headgate_phase{phase="draining"} 0
headgate_phase{phase="joining"} 0
headgate_phase{phase="ready"} 1
headgate_phase{phase="starting"} 0
headgate_phase{phase="stopped"} 0
# HELP headgate_ready 1 while the node says that it is ready, else 0.
# TYPE headgate_ready gauge
headgate_ready 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	})
}
