package client_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/cmd/headgate/internal/client"
)

// asked is one request as the server saw it.
type asked struct{ method, target, body string }

func serve(t *testing.T, status int, answer string) (*client.Client, *asked) {
	t.Helper()
	var seen asked
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var b strings.Builder
		_ = r.Write(&b)
		_, body, _ := strings.Cut(b.String(), "\r\n\r\n")
		seen = asked{r.Method, r.RequestURI, body}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(s.Close)
	c, err := client.New(s.URL+"/", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return c, &seen
}

// Whatever a name holds, it stays one step of a path.
func TestClient_escapes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(context.Context, *client.Client) error
		want asked
	}{
		{"policy", func(ctx context.Context, c *client.Client) error {
			_, err := c.Policy(ctx, "a/b c", "*", true)
			return err
		}, asked{"GET", "/v1/policies/a%2Fb%20c/%2A?effective=true", ""}},
		{"put", func(ctx context.Context, c *client.Client) error {
			_, err := c.PutPolicy(ctx, client.Write{Function: "f", Version: "v", Document: []byte(`{"x":1}`), Revision: "7", DryRun: true})
			return err
		}, asked{"PUT", "/v1/policies/f/v?dryRun=true&revision=7", `{"x":1}`}},
		{"delete", func(ctx context.Context, c *client.Client) error { return c.DeletePolicy(ctx, "f", "v", "") },
			asked{"DELETE", "/v1/policies/f/v", ""}},
		{"counters", func(ctx context.Context, c *client.Client) error {
			_, err := c.Counters(ctx, client.CounterQuery{Function: "f&g", Account: "a b", Limit: 3})
			return err
		}, asked{"GET", "/v1/counters?account=a+b&function=f%26g&limit=3", ""}},
		{"grant", func(ctx context.Context, c *client.Client) error {
			_, err := c.GrantCounter(ctx, "f.v.account.a=/b", 5)
			return err
		}, asked{"POST", "/v1/counters/f.v.account.a=%2Fb/grant", `{"units":5}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ask, seen := serve(t, http.StatusOK, "{}")
			if err := c.do(t.Context(), ask); err != nil {
				t.Fatal(err)
			}
			if *seen != c.want {
				t.Errorf("asked %+v, want %+v", *seen, c.want)
			}
		})
	}
}

func TestClient_problems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		answer string
		want   string
	}{
		{409, `{"error":{"code":"conflict","message":"the policy is at revision 4; read it again","revision":"4"}}`, "the policy is at revision 4; read it again"},
		{400, `{"error":{"code":"invalid_policy","message":"the policy is not valid","faults":[{"path":"account.rates","value":"lots","reason":"is no rate"}]}}`,
			"the policy is not valid\naccount.rates: \"lots\" is no rate"},
		{502, "<html>", "the server answered 502 Bad Gateway"},
	} {
		ask, _ := serve(t, c.status, c.answer)
		_, err := ask.Status(t.Context())
		var p *client.Problem
		if !errors.As(err, &p) || p.Status != c.status || err.Error() != c.want {
			t.Errorf("%d: %v, want %s", c.status, err, c.want)
		}
	}
}

// What goes wrong on the way tells neither path nor query: they hold names.
func TestClient_errorsTellNoNames(t *testing.T) {
	t.Parallel()
	c, err := client.New("127.0.0.1:1", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Counters(t.Context(), client.CounterQuery{Function: "f", Account: "acme", Subject: "jane"})
	if err == nil || strings.Contains(err.Error(), "acme") || strings.Contains(err.Error(), "jane") {
		t.Errorf("error %v", err)
	}
	ask, _ := serve(t, http.StatusOK, "not JSON")
	if _, err := ask.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "not what was expected") {
		t.Errorf("error %v", err)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "ftp://h", "http://", "a b"} {
		if _, err := client.New(bad, time.Second); !errors.Is(err, client.ErrServer) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
