package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// answering is a front door that is not open at first, then answers the same
// to all.
func answering(t *testing.T, unready int32, allowed bool) *httptest.Server {
	t.Helper()
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= unready {
			http.Error(w, `{"error":{"code":"unavailable"}}`, http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintf(w, `{"allowed":%v,"mode":"leased"}`, allowed)
	}))
	t.Cleanup(srv.Close)
	return srv
}

func TestCheckExpects(t *testing.T) {
	t.Parallel()
	cases := []struct {
		allowed bool
		args    string
		code    int
	}{
		{true, "", exitOK},
		{false, "", exitDenied},
		{true, "--expect=allowed", exitOK},
		{false, "--expect=allowed", exitDenied},
		{true, "--expect=denied", exitDenied},
		{false, "--expect=denied", exitOK},
		{true, "--expect=maybe", exitError},
	}
	for _, c := range cases {
		srv := answering(t, 0, c.allowed)
		args := append([]string{"check", "--function=f", "--server=" + srv.URL}, strings.Fields(c.args)...)
		if code, _, stderr := headgate(t, nil, args...); code != c.code {
			t.Errorf("allowed %v, %q: exit code %d, want %d; %s", c.allowed, c.args, code, c.code, stderr)
		}
	}
}

func TestCheckWaitsForAnAnswer(t *testing.T) {
	t.Parallel()
	srv := answering(t, 2, false)
	args := []string{"check", "--function=f", "--server=" + srv.URL, "--expect=denied"}
	if code, _, _ := headgate(t, nil, args...); code != exitError {
		t.Errorf("without --wait: exit code %d, want %d", code, exitError)
	}
	if code, _, stderr := headgate(t, nil, append(args, "--wait=1m")...); code != exitOK {
		t.Errorf("with --wait: exit code %d; %s", code, stderr)
	}
	never := answering(t, 1<<30, true)
	code, _, stderr := headgate(t, nil, "check", "--function=f", "--server="+never.URL, "--wait=400ms")
	if code != exitError || stderr == "" {
		t.Errorf("nobody answers: exit code %d, %q", code, stderr)
	}
}
