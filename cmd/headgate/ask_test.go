package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/invocation/nvcfpb"
	"github.com/headgate-io/headgate/test/ports"
)

// asker asks a node over one of its front doors for one call of the function
// "resize" and says whether it is allowed.
type asker func(n *node, account string) bool

func overHTTP(n *node, account string) bool {
	n.t.Helper()
	status, a := n.check(account)
	if status != http.StatusOK {
		n.t.Fatalf("check answers %d", status)
	}
	return a.Allowed
}

// check is POST /v1/check.
func (n *node) check(account string) (int, invocation.Answer) {
	n.t.Helper()
	body := `{"account":"` + account + `","function":"resize","version":"v1"}`
	resp, err := http.Post("http://"+n.http+"/v1/check", "application/json", strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var a invocation.Answer
	if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
		n.t.Fatal(err)
	}
	return resp.StatusCode, a
}

func overGRPC(n *node, account string) bool {
	n.t.Helper()
	resp, err := nvcfpb.NewRateLimitServiceClient(n.dial()).RateLimit(context.Background(), &nvcfpb.RateLimitRequest{
		NcaId: account, FunctionId: "resize", FunctionVersionId: "v1",
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return resp.GetResult() == nvcfpb.Result_ALLOW
}

// dial connects to the gRPC front door for the rest of the test.
func (n *node) dial() *grpc.ClientConn {
	n.t.Helper()
	conn, err := grpc.NewClient(n.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// health is what grpc.health.v1.Health says.
func (n *node) health() healthpb.HealthCheckResponse_ServingStatus {
	n.t.Helper()
	resp, err := healthpb.NewHealthClient(n.dial()).Check(context.Background(), &healthpb.HealthCheckRequest{})
	if err != nil {
		n.t.Fatal(err)
	}
	return resp.GetStatus()
}

// admitted asks times over and counts what is allowed.
func admitted(n *node, ask asker, account string, times int) int {
	n.t.Helper()
	count := 0
	for range times {
		if ask(n, account) {
			count++
		}
	}
	return count
}

// settled waits until the node holds no lease and owes nothing.
func (n *node) settled() {
	n.t.Helper()
	waitUntil(n.t, patience,
		func() bool { return n.metric("headgate_unsettled_units") == "0" },
		func() string { return "unsettled: " + n.metric("headgate_unsettled_units") })
}

// headgate runs a command to its end.
func headgate(t *testing.T, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return headgateIn(t, "", environ, args...)
}

// headgateIn does so with something on standard input.
func headgateIn(t *testing.T, stdin string, environ []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	program := headgateBinary(t) // built outside of the bound
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	cmd.Env = append([]string{"HOME=" + t.TempDir()}, environ...)
	cmd.Dir = t.TempDir()
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// natsServer is a real NATS server that can come and go.
type natsServer struct {
	*process
	url, dir string
	port     int
}

// startNATS starts a server with JetStream on a port of its own.
func startNATS(t *testing.T) *natsServer {
	t.Helper()
	s := &natsServer{dir: t.TempDir(), port: ports.Free(t, 1)[0]}
	s.url = "nats://127.0.0.1:" + strconv.Itoa(s.port)
	s.start(t)
	return s
}

// start starts it on the same port and directory as before.
func (s *natsServer) start(t *testing.T) {
	t.Helper()
	s.process = launch(t, natsBinary(t), nil, "-a", "127.0.0.1", "-p", strconv.Itoa(s.port), "-js", "-sd", s.dir)
	waitUntil(t, patience, func() bool { return strings.Contains(s.said(), "Server is ready") },
		func() string { return "the NATS server is not ready:\n" + s.said() })
}
