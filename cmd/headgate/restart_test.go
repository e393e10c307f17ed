package main

import (
	"os"
	"path/filepath"
	"testing"
)

// policyFile writes policies into a file of their own.
func policyFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	tenAnHour      = "function: resize\naccount: {rates: 10-H}\n"
	tenAnHourExact = "function: resize\naccount: {rates: 10-H}\nconsistency: exact\n"
)

// Neither a graceful nor a forced restart gives anybody a fresh budget: of
// 4 + 3 + 10 calls exactly 10 are admitted, over both front doors and beside a
// NATS server that is killed in between, too.
func TestRestart_keepsCounters(t *testing.T) {
	t.Parallel()
	for _, door := range []struct {
		name string
		ask  asker
	}{{"grpc", overGRPC}, {"http", overHTTP}} {
		t.Run("embedded/"+door.name, func(t *testing.T) {
			t.Parallel()
			args := []string{"--data-dir", t.TempDir(), "--policies", policyFile(t, tenAnHourExact)}
			spend(t, door.ask, args, func() {})
		})
		t.Run("external/"+door.name, func(t *testing.T) {
			t.Parallel()
			nats := startNATS(t)
			args := []string{"--nats-url", nats.url, "--nats-replicas=1", "--policies", policyFile(t, tenAnHourExact)}
			spend(t, door.ask, args, func() {
				nats.kill()
				nats.start(t)
			})
		})
	}
}

// spend makes 4 calls, SIGTERM, 3 calls, SIGKILL, 10 calls, with between each
// time the node is down.
func spend(t *testing.T, ask asker, args []string, between func()) {
	t.Helper()
	n := startNode(t, args...)
	if got := admitted(n, ask, "acme", 4); got != 4 {
		t.Fatalf("first 4 calls: %d admitted", got)
	}
	n.stop()
	between()

	n = startNode(t, args...)
	if got := admitted(n, ask, "acme", 3); got != 3 {
		t.Fatalf("3 calls after SIGTERM: %d admitted", got)
	}
	n.kill()
	between()

	n = startNode(t, args...)
	if got := admitted(n, ask, "acme", 10); got != 3 {
		t.Fatalf("10 calls after SIGKILL: %d admitted, want the 3 that are left", got)
	}
	if got := admitted(n, ask, "other", 1); got != 1 {
		t.Error("another account is limited too")
	}
	n.stop()
}

// The same with leases: a node that is killed while it holds none, which it
// does as soon as it falls idle, costs nothing either.
func TestRestart_keepsCountersLeased(t *testing.T) {
	t.Parallel()
	args := []string{"--data-dir", t.TempDir(), "--policies", policyFile(t, tenAnHour)}
	total := 0
	for _, calls := range []int{4, 3, 10} {
		n := startNode(t, args...)
		total += admitted(n, overHTTP, "acme", calls)
		n.settled()
		n.kill()
	}
	if total != 10 {
		t.Errorf("%d admitted, want 10", total)
	}
}
