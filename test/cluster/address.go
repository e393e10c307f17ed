package cluster

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports are the same for every process; addresses tell them apart.
const (
	portGRPC   = 7777
	portHTTP   = 7778
	portAdmin  = 7776
	portRoutes = 6222
	portNATS   = 4222
	portHealth = 8222 // of an external server
)

// hosts hands out loopback addresses that no other cluster of this machine has.
// With one address per process a port cannot be lost to somebody else between a
// stop and the next start, as one picked by the system can. Connections come
// from 127.0.0.1, so that a route cannot be dialled at the address a peer was
// seen at: routes go through the proxies that stand between nodes.
type hosts struct {
	lock   net.Listener // who listens here owns the addresses
	prefix string
}

// lockPort is where the owner of a range of addresses listens.
const lockPort = 6000

// newHosts finds a range of addresses that nobody uses.
func newHosts(tb testing.TB) *hosts {
	tb.Helper()
	const tries = 100
	var err error
	for range tries {
		prefix := fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(255))
		l, e := net.Listen("tcp", net.JoinHostPort(prefix+".1", fmt.Sprint(lockPort)))
		if err = e; err == nil {
			tb.Cleanup(func() { l.Close() })
			return &hosts{lock: l, prefix: prefix}
		}
	}
	tb.Fatalf("no loopback addresses: %v", err)
	return nil
}

// node is the address of the i-th node, from 1.
func (h *hosts) node(i int) string { return fmt.Sprintf("%s.%d", h.prefix, 10+i) }

// server is the address of the i-th external NATS server, from 1.
func (h *hosts) server(i int) string { return fmt.Sprintf("%s.%d", h.prefix, 100+i) }

func at(host string, port int) string { return net.JoinHostPort(host, fmt.Sprint(port)) }
