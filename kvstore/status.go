package kvstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Status is how the cluster stands, as its store tells it.
type Status struct {
	Node     string         `json:"node"` // who answers
	Nodes    []NodeStatus   `json:"nodes"`
	Buckets  []BucketStatus `json:"buckets"`
	Counters uint64         `json:"counters"` // records that have not expired
}

// NodeStatus is a node as it told of itself.
type NodeStatus struct {
	Name    string        `json:"name"`
	Phase   string        `json:"phase"`
	Version string        `json:"version"`
	Uptime  time.Duration `json:"uptimeNs"`
	// Offset is the store's clock minus the node's wall clock, Error its bound.
	Offset time.Duration `json:"offsetNs"`
	Error  time.Duration `json:"offsetErrorNs"`
	// Silent is how long ago the node last told of itself; Alive is false when
	// that is longer than the configured time.
	Silent time.Duration `json:"silentNs"`
	Alive  bool          `json:"alive"`
	// Owner: the node settles exchanges for others.
	Owner bool `json:"owner"`
}

// BucketStatus is a bucket's place in the cluster of servers.
type BucketStatus struct {
	Name     string          `json:"name"`
	Leader   string          `json:"leader"`   // empty: it has none; a server alone leads without a name
	Replicas []ReplicaStatus `json:"replicas"` // the leader included
	Records  uint64          `json:"records"`
	Bytes    uint64          `json:"bytes"`
}

// ReplicaStatus is one server's copy of a bucket.
type ReplicaStatus struct {
	Server  string        `json:"server"`
	Current bool          `json:"current"` // up to date
	Offline bool          `json:"offline"` // not to be reached
	Lag     uint64        `json:"lag"`     // operations behind
	Silent  time.Duration `json:"silentNs"`
}

// replicaSilence is how long a bucket's leader hears nothing of a replica that is
// behind before it counts as offline: leaders and replicas speak every second.
const replicaSilence = 3 * time.Second

// Status asks the store how everything stands, within ctx. What could be
// learned is returned together with what could not: where the store cannot be
// asked for the nodes, they are as this node heard them last. Before the store is
// connected the error is [ratelimit.ErrUnavailable].
func (s *Store) Status(ctx context.Context) (Status, error) {
	st := Status{Node: s.cfg.NodeName}
	l := s.link.Load()
	if l == nil {
		return st, errNotJoined
	}
	names := bucketNames()
	st.Buckets = make([]BucketStatus, len(names))
	errs := make([]error, len(names)+1)
	var g errgroup.Group
	for i, b := range names {
		g.Go(func() error {
			st.Buckets[i], errs[i] = bucketStatus(ctx, l.js, b)
			return nil
		})
	}
	g.Go(func() error {
		st.Nodes, errs[len(names)] = s.nodeStatus(ctx, l.js)
		return nil
	})
	_ = g.Wait() // each keeps its own error
	for _, b := range st.Buckets {
		if b.Name == CountersBucket {
			st.Counters = b.Records
		}
	}
	if st.Nodes == nil {
		st.Nodes = s.nodes.members.known()
	}
	if err := errors.Join(errs...); err != nil {
		return st, fmt.Errorf("%w: status: %w", ratelimit.ErrUnavailable, err)
	}
	return st, nil
}

func bucketStatus(ctx context.Context, js jetstream.JetStream, bucket string) (BucketStatus, error) {
	b := BucketStatus{Name: bucket}
	info, err := bucketInfo(ctx, js, bucket)
	if err != nil {
		return b, fmt.Errorf("bucket %s: %w", bucket, err)
	}
	b.Records, b.Bytes = info.State.Msgs, info.State.Bytes
	if info.Cluster == nil {
		return b, nil
	}
	b.Leader = info.Cluster.Leader
	if b.Leader != "" {
		b.Replicas = append(b.Replicas, ReplicaStatus{Server: b.Leader, Current: true})
	}
	for _, r := range info.Cluster.Replicas {
		b.Replicas = append(b.Replicas, ReplicaStatus{
			Server: r.Name, Current: r.Current && !r.Offline, Lag: r.Lag, Silent: r.Active,
			Offline: r.Offline || !r.Current && r.Active > replicaSilence,
		})
	}
	slices.SortFunc(b.Replicas, func(x, y ReplicaStatus) int { return strings.Compare(x.Server, y.Server) })
	return b, nil
}

// nodeStatus lists the nodes by name. How long each is silent is told by the
// newest of the store's own stamps, so no wall clock here matters.
func (s *Store) nodeStatus(ctx context.Context, js jetstream.JetStream) ([]NodeStatus, error) {
	found, err := readNodes(ctx, js)
	if err != nil {
		return nil, err
	}
	var newest counter.Instant
	for _, h := range found {
		newest = max(newest, h.stamp)
	}
	all := make([]NodeStatus, 0, len(found))
	for _, h := range found {
		silent := newest.Sub(h.stamp)
		all = append(all, NodeStatus{
			Name: h.name, Phase: h.beat.Phase, Version: h.beat.Version, Uptime: h.beat.Uptime,
			Offset: h.beat.Offset, Error: h.beat.Error,
			Silent: silent, Alive: silent <= s.cfg.NodeTTL, Owner: h.beat.Owner,
		})
	}
	slices.SortFunc(all, byNodeName)
	return all, nil
}

func byNodeName(x, y NodeStatus) int { return strings.Compare(x.Name, y.Name) }

// known lists the nodes by name as they were heard last, this one included.
func (m *members) known() []NodeStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]NodeStatus, 0, len(m.nodes))
	for name, n := range m.nodes {
		silent := m.elapsed - n.seen
		all = append(all, NodeStatus{
			Name: name, Phase: n.beat.Phase, Version: n.beat.Version, Uptime: n.beat.Uptime,
			Offset: n.beat.Offset, Error: n.beat.Error, Silent: silent, Alive: silent <= m.ttl, Owner: n.beat.Owner,
		})
	}
	slices.SortFunc(all, byNodeName)
	return all
}
