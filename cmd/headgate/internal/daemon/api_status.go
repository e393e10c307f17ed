package daemon

import (
	"context"
	"time"

	"go.uber.org/fx"

	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/lifecycle"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// statusPatience bounds how long a store that may be away is asked.
const statusPatience = 2 * time.Second

// statusSource is what knows how the node and the others are doing.
type statusSource struct {
	fx.In

	Build   Build
	Config  kvstore.Config
	Store   *kvstore.Store
	Limiter *ratelimit.Limiter
	Set     *policy.Set
	Life    *lifecycle.Node
}

// status is this node, which always knows itself, and what the store can tell
// now. A store that cannot be asked leaves its part out.
func (s statusSource) status(ctx context.Context) (admin.Status, error) {
	life := s.Life.State()
	out := admin.Status{
		Node: s.Config.NodeName, Phase: life.Phase.String(), Version: s.Build.Version,
		Ready: life.Ready, Degraded: life.Degraded, Unsettled: s.Limiter.Unsettled(),
		Policies: len(s.Set.Policies()),
	}
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	store, err := s.Store.Status(ctx)
	for _, n := range store.Nodes {
		out.Nodes = append(out.Nodes, admin.Node{
			Name: n.Name, Phase: n.Phase, Version: n.Version,
			Uptime: n.Uptime.Seconds(), Offset: n.Offset.Seconds(), Alive: n.Alive, Silent: n.Silent.Seconds(),
		})
	}
	for _, b := range store.Buckets {
		out.Buckets = append(out.Buckets, bucketStatus(b))
	}
	if err == nil {
		counters := int64(store.Counters)
		out.Counters = &counters
	}
	return out, nil
}

func bucketStatus(b kvstore.BucketStatus) admin.Bucket {
	out := admin.Bucket{Name: b.Name, Leader: b.Leader, Records: int64(b.Records), Bytes: int64(b.Bytes)}
	for _, r := range b.Replicas {
		out.Replicas = append(out.Replicas, admin.Replica{Name: r.Server, Current: r.Current, Offline: r.Offline, Lag: int64(r.Lag)})
	}
	return out
}
