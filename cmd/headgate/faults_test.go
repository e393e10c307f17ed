package main

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/headgate-io/headgate/invocation/nvcfpb"
)

// A configuration is refused before anything starts, with every fault.
func TestServe_refuses(t *testing.T) {
	t.Parallel()
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Close() }) // after the parallel subtests
	free := []string{"--grpc-listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0"}
	cases := []struct {
		name    string
		args    []string
		environ []string
		want    []string
	}{
		{"an unknown flag", []string{"--nope"}, nil, []string{"unknown flag: --nope"}},
		{"an argument", []string{"now"}, nil, []string{`unknown command "now"`}},
		{"an unknown variable", nil, []string{"HEADGATE_NOPE=1"}, []string{"HEADGATE_NOPE: no key has this name"}},
		{"every fault", []string{"--drain-notice=25s", "--log-level=loud"}, []string{"HEADGATE_DRAIN_GRACE=x"}, []string{
			"headgate: drain.grace", "headgate: log.level", "headgate: lifecycle.gracePeriod", "drain.notice 25s",
		}},
		{"an open listener", []string{"--grpc-listen=0.0.0.0:0"}, nil, []string{"grpc.listen", "--insecure"}},
		{"an open admin listener", []string{"--admin-listen=:0"}, nil, []string{"admin.listen", "--insecure"}},
		{"a port in use", slices.Concat(free, []string{"--grpc-listen=" + busy.Addr().String()}), nil, []string{
			"grpc: cannot listen on " + busy.Addr().String(), "address already in use",
		}},
		{"an admin port in use", slices.Concat(free, []string{"--admin-listen=" + busy.Addr().String()}), nil, []string{
			"admin: cannot listen on " + busy.Addr().String(), "address already in use",
		}},
		{"no policies where they should be", slices.Concat(free, []string{"--policies=/nonexistent/p.yaml"}), nil, []string{"/nonexistent/p.yaml"}},
		{"a policy that is none", slices.Concat(free, []string{"--policies", policyFile(t, "function: f\naccount: {rates: lots}\n")}), nil, []string{
			"account.rates", "lots",
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"serve", "--node-name=n1", "--data-dir", t.TempDir()}, c.args...)
			code, stdout, stderr := headgate(t, c.environ, args...)
			if code != exitError || stdout != "" {
				t.Errorf("exit code %d, output %q", code, stdout)
			}
			for _, want := range c.want {
				if !strings.Contains(stderr, want) {
					t.Errorf("lacks %q in:\n%s", want, stderr)
				}
			}
		})
	}
}

// Two processes cannot share a data directory, and the second one says so.
func TestServe_dataDirInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	n := startNode(t, "--data-dir", dir)
	code, _, stderr := headgate(t, nil, "serve", "--node-name=n1", "--data-dir", dir,
		"--grpc-listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0")
	if code != exitError || !strings.Contains(stderr, "in use by another process") {
		t.Errorf("exit code %d:\n%s", code, stderr)
	}
	n.stop()
}

// Without its store a node lives, says on every face that it is not ready, and
// leaves at once when it is told to.
func TestServe_unreachableStore(t *testing.T) {
	t.Parallel()
	n := launchNode(t, "--nats-url=nats://127.0.0.1:1", "--drain-notice=10s", "--grace-period=1m")
	waitUntil(t, patience, func() bool {
		_, body := n.get("/readyz")
		return strings.Contains(body, `"phase":"joining"`) && strings.Contains(body, `"check":"connected"`)
	}, func() string { _, body := n.get("/readyz"); return body })
	if code, _ := n.get("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz answers %d", code)
	}
	if code, _ := n.get("/livez"); code != http.StatusOK {
		t.Errorf("/livez answers %d", code)
	}
	if code, _ := n.check("acme"); code != http.StatusServiceUnavailable {
		t.Errorf("/v1/check answers %d", code)
	}
	if got := n.health(); got != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health %s", got)
	}
	_, err := nvcfpb.NewRateLimitServiceClient(n.dial()).RateLimit(t.Context(), &nvcfpb.RateLimitRequest{
		NcaId: "acme", FunctionId: "resize", FunctionVersionId: "v1",
	})
	if status.Code(err) != codes.Unavailable {
		t.Errorf("gRPC answers %v", err)
	}
	began := time.Now()
	n.stop()
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("left after %v: nobody was sent here, so nobody needs notice", took)
	}
}

// SIGTERM is honoured from the first instant: sent as soon as the program says
// anything, it ends it in order.
func TestServe_signalAtOnce(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := launch(t, headgateBinary(t), nil, "serve", "--node-name=n1", "--data-dir", t.TempDir(),
			"--grpc-listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0")
		<-p.lines
		p.signal(sig)
		if code := p.exit(); code != 0 {
			t.Errorf("%v: exit code %d", sig, code)
		}
	}
}

// During the notice a node serves on while every face says that it is leaving;
// a second signal goes to settlement at once.
func TestServe_drains(t *testing.T) {
	t.Parallel()
	n := startNode(t, "--data-dir", t.TempDir(), "--policies", policyFile(t, tenAnHour),
		"--drain-notice=10s", "--grace-period=1m")
	if got := n.health(); got != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health of a ready node: %s", got)
	}
	n.signal(syscall.SIGTERM)
	n.waitFor("/readyz", http.StatusServiceUnavailable, patience)
	if _, body := n.get("/readyz"); !strings.Contains(body, `"phase":"draining"`) {
		t.Errorf("/readyz says %s", body)
	}
	if got := n.health(); got != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Errorf("health of a draining node: %s", got)
	}
	if got := admitted(n, overHTTP, "acme", 3) + admitted(n, overGRPC, "acme", 3); got != 6 {
		t.Errorf("%d of 6 calls admitted during the notice", got)
	}
	began := time.Now()
	n.signal(syscall.SIGTERM)
	if code := n.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the second signal took %v", took)
	}
}

// No name of an account or a subject is in what a node logs or counts.
func TestServe_tellsNoNames(t *testing.T) {
	t.Parallel()
	n := startNode(t, "--data-dir", t.TempDir(), "--policies", policyFile(t, tenAnHour+"subject: {rates: 2-H}\n"), "--log-level=debug")
	code, _, _ := headgate(t, nil, "check", "--server", n.http, "--account", "acme-gmbh", "--function", "resize", "--version", "v1",
		"--subject", "jane:doe/7 x", "--cost", "2")
	if code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	_, metrics := n.get("/metrics")
	n.stop()
	for _, text := range []string{metrics, n.said()} {
		for _, name := range []string{"acme-gmbh", "jane", "doe/7"} {
			if strings.Contains(text, name) {
				t.Errorf("%s is told in:\n%s", name, text)
			}
		}
	}
}
