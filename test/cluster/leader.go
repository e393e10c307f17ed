package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// CountersStream is the stream that holds the counters.
const CountersStream = "KV_headgate_counters"

// elected is what an embedded server logs when it becomes the stream's leader.
const elected = "JetStream cluster new stream leader for '$G > " + CountersStream + "'"

// Leader is the node whose embedded server leads the counters' bucket.
func (c *Cluster) Leader() *Node {
	c.tb().Helper()
	var leader *Node
	var latest time.Time
	for _, n := range c.nodes {
		line, found, err := n.log.last(elected)
		if err != nil {
			c.tb().Fatal(err)
		}
		if !found {
			continue
		}
		var entry struct{ Time time.Time }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			c.tb().Fatalf("log of %s: %v: %s", n.Name(), err, line)
		}
		if entry.Time.After(latest) {
			leader, latest = n, entry.Time
		}
	}
	if leader == nil {
		c.tb().Fatal("no node ever led the counters' bucket")
	}
	return leader
}

// LeaderServer is the external server that leads the counters' bucket.
func (c *Cluster) LeaderServer() *Server {
	c.tb().Helper()
	var leader *Server
	await(c.tb(), readyBound, "the counters' bucket has a leader", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stream, err := c.JetStream().Stream(ctx, CountersStream)
		if err != nil {
			return err
		}
		info := stream.CachedInfo()
		if info.Cluster == nil {
			return errors.New("the bucket is not replicated")
		}
		for _, s := range c.servers {
			if s.Name() == info.Cluster.Leader {
				leader = s
				return nil
			}
		}
		return fmt.Errorf("led by %q", info.Cluster.Leader)
	})
	return leader
}

// JetStream is a connection to the external servers, past any proxy. It is
// closed with the test.
func (c *Cluster) JetStream() jetstream.JetStream {
	c.tb().Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.js != nil {
		return c.js
	}
	urls := ""
	for _, s := range c.servers {
		urls += "," + s.URL()
	}
	nc, err := nats.Connect(urls[1:], nats.MaxReconnects(-1), nats.ReconnectWait(pollEvery))
	if err != nil {
		c.tb().Fatal(err)
	}
	c.root.Cleanup(nc.Close)
	if c.js, err = jetstream.New(nc); err != nil {
		c.tb().Fatal(err)
	}
	return c.js
}
