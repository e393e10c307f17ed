package kvstore

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/nats-io/nats.go"
)

// Bounds of the connection.
const (
	connectTimeout   = 5 * time.Second // one attempt, the handshakes included
	reconnectLeast   = 100 * time.Millisecond
	reconnectMost    = 400 * time.Millisecond
	pingInterval     = 2 * time.Second // with maxPings: a dead peer is noticed in 6 s
	maxPings         = 2
	connDrainTimeout = 2 * time.Second
)

// connHooks tell the store of its connection.
type connHooks struct {
	up func() // connected, again or for the first time
}

// connOptions are those of every shape. Nothing is kept for later while the
// connection is down: a request then fails at once and is known not to have
// been sent.
func connOptions(cfg Config, log *slog.Logger, h connHooks) []nats.Option {
	return []nats.Option{
		nats.Name("headgate " + cfg.NodeName),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // credentials are rotated while we run
		nats.CustomReconnectDelay(reconnectDelay),
		nats.ReconnectBufSize(-1),
		nats.Timeout(connectTimeout),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(maxPings),
		nats.DrainTimeout(connDrainTimeout),
		nats.ConnectHandler(func(*nats.Conn) { h.up() }),
		nats.ReconnectHandler(func(*nats.Conn) { h.up() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("connection to the store lost", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			// The subscription's subject stays out of the log.
			log.Warn("connection to the store", "error", err)
		}),
	}
}

// reconnectDelay is the pause after all servers were tried once: short, for a
// node should be ready within two seconds of its store, and drawn at random,
// for a thousand nodes come back at once.
func reconnectDelay(int) time.Duration {
	return reconnectLeast + rand.N(reconnectMost-reconnectLeast)
}

// connectEmbedded connects inside the process.
func connectEmbedded(cfg Config, e *embedded, log *slog.Logger, h connHooks) (*nats.Conn, error) {
	opts := append(connOptions(cfg, log, h),
		nats.InProcessServer(e.srv), nats.Token(e.token), nats.IgnoreDiscoveredServers())
	nc, err := nats.Connect("", opts...)
	if err != nil {
		return nil, fmt.Errorf("kvstore: connect to the embedded server: %w", err)
	}
	return nc, nil
}

// externalOptions are those for servers at a URL. Servers that are not there
// yet are tried for ever. The error is a file that cannot be read.
func externalOptions(cfg Config, log *slog.Logger, h connHooks) ([]nats.Option, error) {
	opts := connOptions(cfg, log, h)
	creds, err := cfg.Credentials.option()
	if err != nil {
		return nil, err
	}
	if creds != nil {
		opts = append(opts, creds)
	}
	if cfg.TLS != (TLS{}) {
		t, err := cfg.TLS.client()
		if err != nil {
			return nil, err
		}
		opts = append(opts, nats.Secure(t))
	}
	return opts, nil
}

// option is how c is shown to servers; nil for none.
func (c Credentials) option() (nats.Option, error) {
	switch {
	case c.User != "":
		return nats.UserInfo(c.User, c.Password), nil
	case c.Token != "":
		return nats.Token(c.Token), nil
	case c.CredsFile != "":
		// It is read again at each connection, for it is renewed in place.
		if _, err := os.Stat(c.CredsFile); err != nil {
			return nil, fmt.Errorf("kvstore: Credentials.CredsFile: %w", err)
		}
		return nats.UserCredentials(c.CredsFile), nil
	case c.NKeyFile != "":
		o, err := nats.NkeyOptionFromSeed(c.NKeyFile)
		if err != nil {
			return nil, fmt.Errorf("kvstore: Credentials.NKeyFile: %w", err)
		}
		return o, nil
	}
	return nil, nil
}

// closeConn drains the connection and waits until it is closed.
func closeConn(ctx context.Context, nc *nats.Conn) error {
	closed := nc.StatusChanged(nats.CLOSED)
	if err := nc.Drain(); err != nil {
		nc.Close() // there is nothing to drain to
		return nil
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		nc.Close()
		return fmt.Errorf("kvstore: drain connection: %w", ctx.Err())
	}
}
