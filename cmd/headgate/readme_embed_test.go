package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// platform is a program around the README's lines: what it says is the
// platform's own, and ports and logs for a test.
const platform = `package main

import (
	"log/slog"
	"net/http"
	"os"

	"go.uber.org/fx"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/lifecycle"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

func fromRequest(r *http.Request) ratelimit.Invocation {
	return ratelimit.Invocation{Account: r.Header.Get("X-Account"), Function: "hello", Version: "v1"}
}

var runFunction = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("it ran")) })

func forTest() fx.Option {
	doors := invocation.DefaultConfig()
	doors.GRPCListen, doors.HTTPListen = "127.0.0.1:0", "127.0.0.1:0"
	return fx.Options(fx.NopLogger, fx.Supply(doors, slog.New(slog.NewJSONHandler(os.Stderr, nil))))
}

func main() {
`

// embedded builds the README's example of a platform and returns the program.
func embedded(t *testing.T, natsURL, policies string) string {
	t.Helper()
	lines := readReadme(t).section(t, "Embed").blocks("go")[0]
	for _, change := range [][2]string{
		{`"nats://nats:4222"`, `"` + natsURL + `"`}, {`"policies.yaml"`, `"` + policies + `"`}, {"fx.New(\n", "fx.New(forTest(),\n"},
		{"\nfx.New", "\nstore.Replicas, store.NodeName = 1, \"platform\"\nfx.New"}, // one server, not three
	} {
		if !strings.Contains(lines, change[0]) {
			t.Fatalf("the example lacks %q", change[0])
		}
		lines = strings.Replace(lines, change[0], change[1], 1)
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(platform+lines+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	project, err := filepath.Abs(projectDir)
	if err != nil {
		t.Fatal(err)
	}
	// The program stands in the module without being written there.
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(project, "cmd/platform/main.go"): source}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "platform")
	cmd := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./cmd/platform")
	cmd.Dir = project
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the README's example: %v\n%s\n%s", err, out, lines)
	}
	return program
}

// The README's platform: its function runs as often as the policy allows, over
// its own path and beside the front doors, and a restart forgives nothing.
func TestReadme_embed(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	program := embedded(t, nats.url, policyFile(t, "function: hello\naccount: {rates: 3-H}\n"))
	start := func() *node {
		n := &node{process: launch(t, program, nil), admin: "none"}
		n.awaitDoors()
		waitUntil(t, patience, func() bool { code, _ := n.invoke("warm"); return code != http.StatusServiceUnavailable },
			func() string { return "the gate does not open" })
		return n
	}
	n := start()
	for range 2 {
		if code, body := n.invoke("acme"); code != http.StatusOK || body != "it ran" {
			t.Errorf("within the limit: %d %s", code, body)
		}
	}
	n.stop()
	n = start()
	if code, body := n.invoke("acme"); code != http.StatusOK {
		t.Errorf("the third: %d %s", code, body)
	}
	if code, body := n.invoke("acme"); code != http.StatusTooManyRequests || !strings.Contains(body, "3-H") {
		t.Errorf("the fourth, after a restart: %d %s", code, body)
	}
	n.stop()
}

// invoke calls the platform's function.
func (n *node) invoke(account string) (code int, body string) {
	n.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+n.http+"/invoke/", nil)
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header.Set("X-Account", account)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}
