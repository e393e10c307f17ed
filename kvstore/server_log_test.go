package kvstore

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A member that is gone is complained about once a minute, not four times a
// second; another fault is told at once.
func TestServerLog_repeatsItselfOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &serverLog{log: slog.New(slog.NewTextHandler(&out, nil))}
		refused := errors.New("dial tcp 127.0.0.1:6222: connect: connection refused")
		for i := range 400 {
			l.Errorf("Error trying to connect to route (attempt %v): %v", i+1, refused)
			time.Sleep(250 * time.Millisecond)
		}
		l.Warnf("JetStream cluster stream '%s' has NO quorum, stalled", "KV_headgate_nodes")

		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 3 {
			t.Fatalf("%d lines of 401, want 3:\n%s", len(lines), out.String())
		}
		for i, want := range []string{"(attempt 1)", "leftOut=239", "NO quorum"} {
			if !strings.Contains(lines[i], want) {
				t.Errorf("line %d lacks %q: %s", i, want, lines[i])
			}
		}
	})
}

// What is remembered of a server's complaints is bounded.
func TestServerLog_forgets(t *testing.T) {
	l := &serverLog{log: slog.New(slog.DiscardHandler)}
	for i := range 10 * maxComplaints {
		l.Warnf("complaint %d", i)
	}
	if n := len(l.said); n > maxComplaints {
		t.Errorf("%d complaints remembered, want at most %d", n, maxComplaints)
	}
}
