package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"time"

	healthpb "google.golang.org/grpc/health/grpc_health_v1"
)

// HealthOverGRPC is what the node's health service says, by name.
func (n *Node) HealthOverGRPC() string {
	n.tb().Helper()
	ctx, cancel := context.WithTimeout(context.Background(), askBound)
	defer cancel()
	resp, err := healthpb.NewHealthClient(n.wire.grpc).Check(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		return err.Error()
	}
	return resp.GetStatus().String()
}

// LoggedAt is when the node last logged a line that holds what, on the scale of
// [Call]; 0 when it never did.
func (n *Node) LoggedAt(what string) time.Duration {
	n.tb().Helper()
	line, found, err := n.log.last(what)
	if err != nil {
		n.tb().Fatal(err)
	}
	if !found {
		return 0
	}
	at, err := loggedTime(line)
	if err != nil {
		n.tb().Fatal(err)
	}
	return at.Sub(n.cluster.base.Round(0)) // a log tells the wall clock
}

// loggedTime is the time of a log line.
func loggedTime(line string) (time.Time, error) {
	var entry struct{ Time time.Time }
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		return time.Time{}, fmt.Errorf("log line %q: %w", line, err)
	}
	return entry.Time, nil
}

// HoldOpen sends the node a request whose body never ends, until release is
// called.
func (n *Node) HoldOpen(tb testing.TB) (release func()) {
	tb.Helper()
	conn, err := net.Dial("tcp", at(n.host, portHTTP))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v1/check HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{", n.Name())
	if err != nil {
		tb.Fatal(err)
	}
	return func() { conn.Close() }
}

// AskBadly asks every node what it must refuse, on behalf of a caller, over both
// wires.
func (c *Cluster) AskBadly(k *Caller) {
	c.tb().Helper()
	bad := []Question{
		{Function: k.Policy.Function(), Version: "v1", Account: k.Account, Subject: k.Subject + "\x00"},
		{Function: k.Policy.Function(), Version: "v1", Account: k.Account + "\n", Subject: k.Subject},
		{Function: k.Policy.Function(), Account: k.Account, Subject: k.Subject + "\xff"},
	}
	for _, n := range c.nodes {
		for _, q := range bad {
			for _, w := range []Wire{NVCF, HTTP} {
				ctx, cancel := context.WithTimeout(context.Background(), askBound)
				if a, err := n.Ask(ctx, w, q); err == nil {
					c.tb().Errorf("%s decided what it must refuse: %+v", n.Name(), a)
				}
				cancel()
			}
		}
	}
}
