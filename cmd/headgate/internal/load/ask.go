package load

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/invocation/nvcfpb"
)

// maxAnswerBytes bounds an answer that is read.
const maxAnswerBytes = 1 << 20

// Target is whom to ask, and of which function.
type Target struct {
	Server            string // host:port; over HTTP also a URL
	Function, Version string
	// Clients is how many calls there may be at a time.
	Clients int
}

// overHTTP asks POST /v1/check.
type overHTTP struct {
	url    string
	target Target
	client *http.Client
}

// HTTP is an Asker over POST /v1/check. It connects with the first call.
func HTTP(t Target) Asker {
	base := t.Server
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	return &overHTTP{
		url: strings.TrimSuffix(base, "/") + "/v1/check", target: t,
		client: &http.Client{Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, MaxIdleConns: t.Clients, MaxIdleConnsPerHost: t.Clients,
		}},
	}
}

func (h *overHTTP) Ask(ctx context.Context, account string) (Verdict, error) {
	body, err := json.Marshal(map[string]string{
		"account": account, "function": h.target.Function, "version": h.target.Version,
	})
	if err != nil {
		return Verdict{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return Verdict{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := h.client.Do(req)
	if err != nil {
		return Verdict{}, err
	}
	defer func() { _ = resp.Body.Close() }() // it is read to its end
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswerBytes))
	if err != nil {
		return Verdict{}, fmt.Errorf("read the answer: %w", err)
	}
	var a invocation.Answer
	if resp.StatusCode != http.StatusOK {
		return Verdict{}, fmt.Errorf("the server answered %s", resp.Status)
	}
	if err := json.Unmarshal(data, &a); err != nil {
		return Verdict{}, fmt.Errorf("the answer is not one of a check: %w", err)
	}
	return Verdict{Allowed: a.Allowed, Degraded: a.Degraded}, nil
}

func (h *overHTTP) Close() error {
	h.client.CloseIdleConnections()
	return nil
}

// overGRPC asks nvcfratelimiter.RateLimitService.
type overGRPC struct {
	target Target
	conn   *grpc.ClientConn
	client nvcfpb.RateLimitServiceClient
}

// GRPC is an Asker over the NVCF wire. It connects with the first call; the error
// is an address that cannot be used.
func GRPC(t Target) (Asker, error) {
	conn, err := grpc.NewClient(t.Server, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", t.Server, err)
	}
	return &overGRPC{target: t, conn: conn, client: nvcfpb.NewRateLimitServiceClient(conn)}, nil
}

func (g *overGRPC) Ask(ctx context.Context, account string) (Verdict, error) {
	resp, err := g.client.RateLimit(ctx, &nvcfpb.RateLimitRequest{
		NcaId: account, FunctionId: g.target.Function, FunctionVersionId: g.target.Version,
	})
	if err != nil {
		return Verdict{}, err
	}
	return Verdict{Allowed: resp.GetResult() == nvcfpb.Result_ALLOW}, nil
}

func (g *overGRPC) Close() error { return g.conn.Close() }
