package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/headgate-io/headgate/invocation/nvcfpb"
)

// Wire is a way to ask.
type Wire int

// The wires that tests use.
const (
	NVCF Wire = iota // gRPC, as the clients of the NVCF invocation plane do
	HTTP             // POST /v1/check
)

// String is the wire's name in the names of tests.
func (w Wire) String() string { return [...]string{"nvcf", "http"}[w] }

// Question is one invocation.
type Question struct {
	Function, Version, Account, Subject string
	Cost                                int64 // 0 is 1 unless Look is set
	Look                                bool  // decide without charging; HTTP only
}

// Answer is what a node decided. The NVCF wire tells only Allowed.
type Answer struct {
	Allowed    bool     `json:"allowed"`
	Degraded   bool     `json:"degraded"`
	Remaining  *int64   `json:"remaining"`
	RetryAfter *float64 `json:"retryAfter"`
	Mode       string   `json:"mode"`
}

// RefusedError: the node gave no decision, but answered.
type RefusedError struct {
	Status int // of HTTP
	Body   string
}

func (e *RefusedError) Error() string { return fmt.Sprintf("status %d: %s", e.Status, e.Body) }

// wire holds the connections to one node.
type wire struct {
	host string
	grpc *grpc.ClientConn
	http *http.Client
}

// reconnectEvery is how soon a client tries a node again that was not there.
const reconnectEvery = 100 * time.Millisecond

// idleConnections is how many connections to a node are kept open for HTTP.
const idleConnections = 256

func newWire(tb testing.TB, n *Node) *wire {
	tb.Helper()
	conn, err := grpc.NewClient("passthrough:///"+at(n.host, portGRPC),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reconnectEvery, Multiplier: 1, MaxDelay: reconnectEvery},
			MinConnectTimeout: time.Second,
		}))
	if err != nil {
		tb.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: idleConnections}
	tb.Cleanup(func() {
		_ = conn.Close() // says only that it is closed already
		transport.CloseIdleConnections()
	})
	return &wire{host: n.host, grpc: conn, http: &http.Client{Transport: transport}}
}

// Ask asks the node over a wire. The error says that there was no decision.
func (n *Node) Ask(ctx context.Context, w Wire, q Question) (Answer, error) {
	if w == HTTP {
		return n.wire.askHTTP(ctx, q)
	}
	resp, err := nvcfpb.NewRateLimitServiceClient(n.wire.grpc).RateLimit(ctx, &nvcfpb.RateLimitRequest{
		NcaId: q.Account, FunctionId: q.Function, FunctionVersionId: q.Version, ClientAuthSubject: q.Subject,
	})
	if err != nil {
		return Answer{}, fmt.Errorf("nvcf: %w", err)
	}
	return Answer{Allowed: resp.GetResult() == nvcfpb.Result_ALLOW}, nil
}

func (w *wire) askHTTP(ctx context.Context, q Question) (Answer, error) {
	cost := max(q.Cost, 1)
	if q.Look {
		cost = 0
	}
	body, err := json.Marshal(map[string]any{
		"account": q.Account, "function": q.Function, "version": q.Version, "subject": q.Subject, "cost": cost,
	})
	if err != nil {
		return Answer{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+at(w.host, portHTTP)+"/v1/check", bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := w.http.Do(req)
	if err != nil {
		return Answer{}, fmt.Errorf("http: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return Answer{}, fmt.Errorf("http: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return Answer{}, &RefusedError{resp.StatusCode, string(text)}
	}
	var a Answer
	if err := json.Unmarshal(text, &a); err != nil {
		return Answer{}, fmt.Errorf("http: %w", err)
	}
	return a, nil
}

// unavailable reports whether an error of the NVCF wire says that the node is
// gone or refused before it decided anything.
func unavailable(err error) bool { return status.Code(err) == codes.Unavailable }
