package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
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
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
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
