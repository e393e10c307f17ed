package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// programs is where this run's binaries are.
var programs string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "headgate-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	programs = dir
	code := leakFree(m.Run())
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// leakFree is the exit code of tests, which must leave no goroutine behind.
func leakFree(code int) int {
	http.DefaultClient.CloseIdleConnections()
	if code != 0 {
		return code
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// build compiles a package once per test run.
func build(name, pkg string) func(*testing.T) string {
	once := sync.OnceValues(func() (string, error) {
		path := filepath.Join(programs, name)
		out, err := exec.Command("go", "build", "-o", path, pkg).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
		}
		return path, nil
	})
	return func(t *testing.T) string {
		t.Helper()
		path, err := once()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
}

var (
	headgateBinary = build("headgate", ".")
	natsBinary     = build("nats-server", "github.com/nats-io/nats-server/v2")
)
