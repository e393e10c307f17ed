package cluster

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Server is one external NATS server: a process and its folder.
type Server struct {
	*process

	cluster *Cluster
	number  int
	host    string
}

// newServer prepares the i-th server. One server is alone, several are a
// cluster; none tells its clients about the others, who may be behind proxies.
func newServer(c *Cluster, i int) *Server {
	s := &Server{cluster: c, number: i, host: c.hosts.server(i)}
	config := filepath.Join(c.dir, s.Name()+".conf")
	s.process = newProcess(c, s.Name(), built(c.root, natsBinary), []string{"-c", config}, nil)
	if err := os.WriteFile(config, []byte(s.config()), 0o600); err != nil {
		c.root.Fatal(err)
	}
	return s
}

// Name is the server's name in its cluster.
func (s *Server) Name() string { return fmt.Sprintf("nats-%d", s.number) }

// URL is where clients reach the server, past any proxy.
func (s *Server) URL() string { return "nats://" + at(s.host, portNATS) }

func (s *Server) config() string {
	var b strings.Builder
	fmt.Fprintf(&b, "server_name: %s\nlisten: %q\n", s.Name(), at(s.host, portNATS))
	fmt.Fprintf(&b, "http: %q\n", at(s.host, portHealth))
	fmt.Fprintf(&b, "jetstream: {store_dir: %q}\n", filepath.Join(s.cluster.dir, s.Name()))
	if s.cluster.opts.Servers == 1 {
		return b.String()
	}
	var routes []string
	for i := range s.cluster.opts.Servers {
		routes = append(routes, fmt.Sprintf("%q", "nats-route://"+at(s.cluster.hosts.server(i+1), portRoutes)))
	}
	fmt.Fprintf(&b, "cluster: {name: external, listen: %q, no_advertise: true, routes: [%s]}\n",
		at(s.host, portRoutes), strings.Join(routes, ", "))
	return b.String()
}

// Start starts the process and waits for nothing.
func (s *Server) Start() {
	s.tb().Helper()
	s.start()
}

// AwaitServing waits until the server says that it is healthy, as an
// orchestrator does before it goes on to the next one.
func (s *Server) AwaitServing() {
	s.tb().Helper()
	await(s.tb(), readyBound, s.Name()+" is healthy", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+at(s.host, portHealth)+"/healthz", nil)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	})
}

// Stop stops the server with SIGTERM and waits until it is gone.
func (s *Server) Stop() {
	s.tb().Helper()
	s.end(syscall.SIGTERM)
	s.wait()
}

// Kill ends the server with SIGKILL and waits until it is gone.
func (s *Server) Kill() {
	s.tb().Helper()
	s.kill()
}

// Freeze stops the server in its tracks.
func (s *Server) Freeze() {
	s.tb().Helper()
	s.signal(syscall.SIGSTOP)
}

// Thaw lets a frozen server go on.
func (s *Server) Thaw() {
	s.tb().Helper()
	s.signal(syscall.SIGCONT)
}
