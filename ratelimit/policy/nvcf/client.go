package nvcf

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"os"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"

	"github.com/headgate-io/headgate/ratelimit/policy/nvcf/nvcfapipb"
)

// client is the connection to the API.
type client struct {
	conn  *grpc.ClientConn
	api   nvcfapipb.RateLimitClient
	local bool // the API is on this host
}

// dial connects when it is first needed, and again after at most 2 s.
func dial(cfg Config) (*client, error) {
	creds, err := transport(cfg.TLS)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient(cfg.Address,
		grpc.WithTransportCredentials(creds),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 2 * time.Second,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 5 * time.Minute, Timeout: 10 * time.Second}),
	)
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", cfg.Address, err)
	}
	host, _, _ := net.SplitHostPort(cfg.Address) // Validate has seen to it
	return &client{conn, nvcfapipb.NewRateLimitClient(conn), isLoopback(host)}, nil
}

func transport(cfg TLS) (credentials.TransportCredentials, error) {
	if !cfg.Enabled {
		return insecure.NewCredentials(), nil
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CAFile != "" {
		pem, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("TLS.CAFile: %w", err)
		}
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("TLS.CAFile %s holds no certificate", cfg.CAFile)
		}
	}
	return credentials.NewTLS(settings), nil
}

// ask returns the config of a version, nil when the answer has none.
func (c *client) ask(ctx context.Context, key function, token string) (*nvcfapipb.RateLimitConfig, error) {
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	answer, err := c.api.RateLimitPolicy(ctx, &nvcfapipb.RateLimitPolicyRequest{
		FunctionId: key.id, FunctionVersionId: key.version,
	})
	return answer.GetConfig(), err
}

func (c *client) close() error { return c.conn.Close() }
