package cluster

import (
	"context"
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
		at, err := loggedTime(line)
		if err != nil {
			c.tb().Fatalf("%s: %v", n.Name(), err)
		}
		if at = at.Add(-n.clock()); at.After(latest) {
			leader, latest = n, at
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
	nc, err := nats.Connect(urls[1:], nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(pollEvery))
	if err != nil {
		c.tb().Fatal(err)
	}
	c.root.Cleanup(nc.Close)
	if c.js, err = jetstream.New(nc); err != nil {
		c.tb().Fatal(err)
	}
	return c.js
}

// AwaitReplicas waits until every external server holds the counters' bucket
// up to date.
func (c *Cluster) AwaitReplicas() {
	c.tb().Helper()
	await(c.tb(), readyBound, "all replicas are current", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		stream, err := c.JetStream().Stream(ctx, CountersStream)
		if err != nil {
			return err
		}
		info := stream.CachedInfo()
		if info.Cluster == nil || info.Cluster.Leader == "" || len(info.Cluster.Replicas) != len(c.servers)-1 {
			return fmt.Errorf("cluster %+v", info.Cluster)
		}
		for _, r := range info.Cluster.Replicas {
			if !r.Current || r.Offline {
				return fmt.Errorf("%s is behind", r.Name)
			}
		}
		return nil
	})
}
