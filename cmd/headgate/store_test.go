package main

import (
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Case 8: policies that deny without the store take a ready node out of service
// within 5 s of the store's end and bring it back within 2 s of its return; the
// process stays alive throughout.
func TestServe_case8(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	n := startNode(t, "--nats-url", nats.url, "--nats-replicas=1",
		"--policies", policyFile(t, tenAnHour+"onStoreFailure: deny\n"))
	nats.kill()
	took := n.waitFor("/readyz", http.StatusServiceUnavailable, 5*time.Second)
	if code, _ := n.get("/livez"); code != http.StatusOK {
		t.Errorf("/livez answers %d without a store", code)
	}
	nats.start(t)
	back := n.waitFor("/readyz", http.StatusOK, 2*time.Second)
	t.Logf("out after %v, back after %v", took, back)
	n.stop()
}

// A node whose policies can be served without the store stays in service and
// says that it is degraded.
func TestServe_staysReadyWithoutTheStore(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	n := startNode(t, "--nats-url", nats.url, "--nats-replicas=1", "--policies", policyFile(t, tenAnHour))
	admitted(n, overHTTP, "acme", 1)
	nats.kill()
	waitUntil(t, patience, func() bool {
		_, body := n.get("/readyz")
		return strings.Contains(body, `"degraded":true`)
	}, func() string { return "not degraded" })
	if code, body := n.get("/readyz"); code != http.StatusOK || !strings.Contains(body, `"phase":"ready"`) {
		t.Errorf("/readyz answers %d %s", code, body)
	}
	if !overHTTP(n, "acme") {
		t.Error("denied within its share")
	}
	nats.start(t)
	waitUntil(t, patience, func() bool {
		_, body := n.get("/readyz")
		return strings.Contains(body, `"degraded":false`)
	}, func() string { return "still degraded" })
	n.stop()
}

// Case 7, with a shorter wait: a node that was there before its NATS is ready
// within 2 s of NATS being up.
func TestServe_waitsForTheStore(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	nats.kill()
	n := launchNode(t, "--nats-url", nats.url, "--nats-replicas=1")
	waited := time.Now()
	waitUntil(t, patience, func() bool { return time.Since(waited) > 4*time.Second }, func() string { return "" })
	if code, _ := n.get("/livez"); code != http.StatusOK {
		t.Errorf("/livez answers %d", code)
	}
	nats.start(t)
	t.Logf("ready after %v", n.waitFor("/readyz", http.StatusOK, 2*time.Second))
	n.stop()
}

// What was admitted while the store was away and cannot be charged before the
// node has to go makes the exit code 1, and the log says how much.
func TestServe_unsettledExitsOne(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	n := startNode(t, "--nats-url", nats.url, "--nats-replicas=1", "--settle-timeout=1s",
		"--policies", policyFile(t, "function: resize\naccount: {rates: 1000-H}\nconsistency: delayed\n"))
	admitted(n, overHTTP, "acme", 1)
	n.settled()
	nats.kill()
	const calls = 5
	if got := admitted(n, overHTTP, "acme", calls); got != calls {
		t.Fatalf("%d of %d admitted without a store", got, calls)
	}
	n.signal(syscall.SIGTERM)
	if code := n.exit(); code != exitDenied {
		t.Errorf("exit code %d, want 1", code)
	}
	if want := `"msg":"stopped with units unsettled","units":` + strconv.Itoa(calls) + `,"counters":1`; !strings.Contains(n.said(), want) {
		t.Errorf("lacks %s", want)
	}
}
