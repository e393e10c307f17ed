package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Node is one headgate process and its folder.
type Node struct {
	*process

	cluster *Cluster
	number  int
	host    string
	dataDir string
	proxies []*proxy // between it and the servers, or the other nodes
	wire    *wire
}

// newNode prepares the i-th node.
func newNode(c *Cluster, i int) *Node {
	n := &Node{
		cluster: c,
		number:  i,
		host:    c.hosts.node(i),
		dataDir: filepath.Join(c.dir, fmt.Sprintf("data-%d", i)),
	}
	path := Binary
	var env []string
	if i <= len(c.opts.Clocks) {
		path = SkewedBinary
		env = []string{fmt.Sprintf("%s=%d", clockVariable, int64(n.clock().Seconds()))}
	}
	config := filepath.Join(c.dir, n.Name()+".yaml")
	n.process = newProcess(c, n.Name(), path(c.root), []string{"serve", "--config", config}, env)
	if err := os.WriteFile(config, []byte(n.config()), 0o600); err != nil {
		c.root.Fatal(err)
	}
	n.wire = newWire(c.root, n)
	return n
}

// Name is the node's name in the cluster.
func (n *Node) Name() string { return fmt.Sprintf("node-%d", n.number) }

// Number is the node's, from 1.
func (n *Node) Number() int { return n.number }

// clock is by how much the node's wall clock is off.
func (n *Node) clock() time.Duration {
	if n.number > len(n.cluster.opts.Clocks) {
		return 0
	}
	return n.cluster.opts.Clocks[n.number-1]
}

// config is the text of the node's configuration file.
func (n *Node) config() string {
	o := n.cluster.opts
	var b strings.Builder
	fmt.Fprintf(&b, "grpc: {listen: %q}\nhttp: {listen: %q}\nadmin: {listen: %q}\n",
		at(n.host, portGRPC), at(n.host, portHTTP), at(n.host, portAdmin))
	fmt.Fprintf(&b, "node: {name: %s}\ndataDir: %q\n", n.Name(), n.dataDir)
	fmt.Fprintf(&b, "policies: {path: %q}\n", filepath.Join(n.cluster.dir, "policies.yaml"))
	fmt.Fprintf(&b, "limiter: {attempt: %v}\ndrain: {notice: %v", o.Attempt, o.DrainNotice)
	if o.DrainGrace != 0 {
		fmt.Fprintf(&b, ", grace: %v", o.DrainGrace)
	}
	b.WriteString("}\n")
	fmt.Fprintf(&b, "log: {level: debug, format: json}\n")
	switch {
	case o.Shape == External:
		fmt.Fprintf(&b, "nats: {url: %q, replicas: %d}\n", strings.Join(n.serverURLs(), ","), o.replicas())
	case o.Nodes > 1:
		fmt.Fprintf(&b, "cluster: {listen: %q, routes: [%s]}\n", at(n.host, portRoutes), strings.Join(n.routes(), ", "))
	}
	b.WriteString(o.Config)
	return b.String()
}

// serverURLs are those of the external servers, or of the proxies before them.
func (n *Node) serverURLs() []string {
	var urls []string
	for _, s := range n.cluster.servers {
		urls = append(urls, "nats://"+n.through(at(s.host, portNATS)))
	}
	return urls
}

// routes are the addresses of all members, or of the proxies before the others.
func (n *Node) routes() []string {
	var routes []string
	for i := range n.cluster.opts.Nodes {
		peer := at(n.cluster.hosts.node(i+1), portRoutes)
		if i+1 != n.number {
			peer = n.through(peer)
		}
		routes = append(routes, fmt.Sprintf("%q", "nats-route://"+peer))
	}
	return routes
}

// through is where the node reaches target: a proxy, where the network can be cut.
func (n *Node) through(target string) string {
	if !n.cluster.opts.Cuttable {
		return target
	}
	p := newProxy(n.cluster.root, target)
	n.proxies = append(n.proxies, p)
	return p.address()
}

// Start starts the process and waits for nothing.
func (n *Node) Start() {
	n.tb().Helper()
	n.start()
}

// Running reports whether the process runs, or is frozen.
func (n *Node) Running() bool { return n.isRunning() }

// Stop stops the node as an orchestrator does, with SIGTERM, and waits until it
// is gone. It must have settled everything.
func (n *Node) Stop() {
	n.tb().Helper()
	if code := n.Leave(); code != 0 {
		n.tb().Errorf("%s left with exit code %d", n.Name(), code)
	}
}

// Leave stops the node like [Node.Stop] and returns its exit code.
func (n *Node) Leave() int {
	n.tb().Helper()
	n.Terminate()
	return n.wait()
}

// Terminate sends SIGTERM and does not wait.
func (n *Node) Terminate() {
	n.tb().Helper()
	n.end(syscall.SIGTERM)
}

// Wait waits until the node is gone and returns its exit code, -1 after a
// signal that it does not handle.
func (n *Node) Wait() int {
	n.tb().Helper()
	return n.wait()
}

// Kill ends the node with SIGKILL and waits until it is gone.
func (n *Node) Kill() {
	n.tb().Helper()
	n.kill()
}

// Freeze stops the node in its tracks; nobody is told.
func (n *Node) Freeze() {
	n.tb().Helper()
	n.signal(syscall.SIGSTOP)
}

// Thaw lets a frozen node go on.
func (n *Node) Thaw() {
	n.tb().Helper()
	n.signal(syscall.SIGCONT)
}

// WipeDisk removes what the stopped node's embedded server kept.
func (n *Node) WipeDisk() {
	n.tb().Helper()
	if n.Running() {
		n.tb().Fatalf("%s still runs on its disk", n.Name())
	}
	if err := os.RemoveAll(n.dataDir); err != nil {
		n.tb().Fatal(err)
	}
}
