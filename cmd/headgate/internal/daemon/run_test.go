package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/cmd/headgate/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// address is a log writer that takes the admin listener's address off the log.
type address struct {
	once  sync.Once
	found chan string
}

func (a *address) Write(line []byte) (int, error) {
	var entry struct{ Msg, Address string }
	if json.Unmarshal(bytes.TrimSpace(line), &entry) == nil && entry.Msg == "admin listener open" {
		a.once.Do(func() { a.found <- entry.Address })
	}
	return len(line), nil
}

func alone(t *testing.T) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.GRPC.Listen, cfg.HTTP.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	cfg.DataDir, cfg.Drain.Notice = t.TempDir(), 0
	return cfg
}

// A whole node in this process becomes ready and, once told to leave, leaves
// nothing running behind; TestMain looks.
func TestRun(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 2)
	log := &address{found: make(chan string, 1)}
	type end struct {
		code int
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		code, err := Run(context.Background(), alone(t), ReadBuild("v0"), signals, slog.New(slog.NewJSONHandler(log, nil)))
		ended <- end{code, err}
	}()
	base := "http://" + <-log.found
	awaitReady(t, base)
	signals <- syscall.SIGTERM
	select {
	case e := <-ended:
		if e.code != 0 || e.err != nil {
			t.Errorf("code %d, error %v", e.code, e.err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("does not leave")
	}
}

func awaitReady(t *testing.T, base string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		resp, err := client.Get(base + "/readyz")
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("not ready")
		}
	}
}

// The end of its context is a reason to leave like a signal.
func TestRun_contextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cfg := alone(t)
	code, err := Run(ctx, cfg, ReadBuild("v0"), nil, quiet)
	if code != exitFailed || err == nil {
		t.Errorf("code %d, error %v: it cannot start with an ended context", code, err)
	}
}

// What was started before a part that cannot start is stopped again.
func TestRun_portInUse(t *testing.T) {
	t.Parallel()
	cfg := alone(t)
	cfg.Admin.Listen = "256.0.0.1:1"
	code, err := Run(t.Context(), cfg, ReadBuild("v0"), nil, quiet)
	if code != exitFailed || err == nil {
		t.Errorf("code %d, error %v", code, err)
	}
}
