package cluster

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Cluster is nodes and what they keep their counters in. All methods may be
// called concurrently; they fail the test instead of returning errors.
type Cluster struct {
	*reporter

	root    testing.TB // the cluster ends with it
	opts    Options
	dir     string
	hosts   *hosts
	nodes   []*Node
	servers []*Server
	base    time.Time // instants of calls are since then

	mu      sync.Mutex
	callers []string            // accounts and subjects that were given out
	js      jetstream.JetStream // see [Cluster.JetStream]
}

// Start starts a cluster and waits until all its nodes are ready, unless the
// options leave that to the test. It ends with the test.
func Start(tb testing.TB, opts Options) *Cluster {
	tb.Helper()
	c := &Cluster{reporter: &reporter{now: tb}, root: tb, opts: opts.withDefaults(), dir: tb.TempDir(), hosts: newHosts(tb), base: time.Now()}
	tb.Cleanup(c.end)
	path := filepath.Join(c.dir, "policies.yaml")
	if err := os.WriteFile(path, []byte(documents(c.opts.Policies)), 0o600); err != nil {
		tb.Fatal(err)
	}
	if c.opts.Shape == External {
		for i := range c.opts.Servers {
			c.servers = append(c.servers, newServer(c, i+1))
		}
	}
	for i := range c.opts.Nodes {
		c.nodes = append(c.nodes, newNode(c, i+1))
	}
	if !c.opts.Later {
		c.StartServers()
		c.StartAll()
	}
	return c
}

// Node is the i-th node, from 1.
func (c *Cluster) Node(i int) *Node { return c.nodes[i-1] }

// Nodes are all nodes.
func (c *Cluster) Nodes() []*Node { return c.nodes }

// Server is the i-th external NATS server, from 1.
func (c *Cluster) Server(i int) *Server { return c.servers[i-1] }

// Servers are all external NATS servers; none where they are embedded.
func (c *Cluster) Servers() []*Server { return c.servers }

// Policies are those that callers can be asked for.
func (c *Cluster) Policies() []Policy { return c.opts.Policies }

// Now is the instant on the scale of [Call].
func (c *Cluster) Now() time.Duration { return time.Since(c.base) }

// StartServers starts all external servers and waits until they serve.
func (c *Cluster) StartServers() {
	c.tb().Helper()
	for _, s := range c.servers {
		s.Start()
	}
	for _, s := range c.servers {
		s.AwaitServing()
	}
}

// StartAll starts all nodes that are not running and waits until they are ready.
func (c *Cluster) StartAll() {
	c.tb().Helper()
	for _, n := range c.nodes {
		if !n.Running() {
			n.Start()
		}
	}
	c.AwaitReady()
}

// Each does something to several nodes at the same time.
func Each(nodes []*Node, do func(*Node)) {
	var all sync.WaitGroup
	for _, n := range nodes {
		all.Go(func() { do(n) })
	}
	all.Wait()
}
