package kvstore

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// testPatience bounds every wait of the tests of this package.
const testPatience = 30 * time.Second

// testConfig is a server alone in a folder of its own, with short heartbeats.
func testConfig(t testing.TB) Config {
	t.Helper()
	cfg := DefaultConfig()
	cfg.NodeName = "node-0"
	cfg.DataDir = t.TempDir()
	cfg.HeartbeatInterval = 100 * time.Millisecond
	cfg.NodeTTL = time.Second
	return cfg
}

// testLog sends a store's log to the test's.
func testLog(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// startStore starts a store; the test stops it at the latest when it ends.
func startStore(t testing.TB, cfg Config, opts ...Option) *Store {
	t.Helper()
	s, err := New(cfg, append([]Option{WithLogger(testLog(t))}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopStore(t, s) })
	return s
}

// stopStore stops a store and checks that it went in good order.
func stopStore(t testing.TB, s *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testPatience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

// awaitJoined waits until all stores are joined.
func awaitJoined(t testing.TB, stores ...*Store) {
	t.Helper()
	patience := time.NewTimer(testPatience)
	defer patience.Stop()
	for _, s := range stores {
		select {
		case <-s.Joined():
		case <-patience.C:
			t.Fatalf("%s did not join: %v", s.cfg.NodeName, failing(s))
		}
	}
}

// failing is all that Checks complains about.
func failing(s *Store) error {
	var errs []error
	for _, c := range s.Checks() {
		if c.Err != nil {
			errs = append(errs, errors.New(c.Name+": "+c.Err.Error()))
		}
	}
	return errors.Join(errs...)
}

// await polls until ok returns true, and fails the test if it never does.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	patience := time.NewTimer(testPatience)
	defer patience.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-patience.C:
			t.Fatalf("never: %s", what)
		}
	}
}
