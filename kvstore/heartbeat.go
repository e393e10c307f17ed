package kvstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// heartbeat is what a node says of itself. It is kept in the nodes bucket
// under the node's name. A field that is not known is skipped, so that two
// releases can read one another.
type heartbeat struct {
	Phase   string        `json:"phase"`
	Version string        `json:"version,omitempty"`
	Uptime  time.Duration `json:"uptime_ns"`
	// Instance tells one process of the node's name from another.
	Instance string `json:"instance,omitempty"`
	// Owner: the node takes exchanges for others.
	Owner bool `json:"owner,omitempty"`
	// Growing: the node brings what it kept while it was alone.
	Growing bool `json:"growing,omitempty"`
	// At is the store's clock as the node knew it when it sent this, and Error
	// its bound; both zero before the node is synced.
	At    counter.Instant `json:"at,omitempty"`
	Error time.Duration   `json:"error_ns,omitempty"`
	// Offset is the store's clock minus the node's wall clock.
	Offset time.Duration `json:"offset_ns,omitempty"`
}

// Headers of a record, as the server and the key-value clients know them.
const (
	headerTTL    = "Nats-TTL"
	headerKVOp   = "KV-Operation"
	kvOpDelete   = "DEL"
	heartbeatTTL = 2 * time.Minute // how long status still shows a silent node
	removalTTL   = time.Minute
)

// heard is a heartbeat as read from the bucket.
type heard struct {
	name  string
	beat  heartbeat
	stamp counter.Instant // by the server that stored it
}

// parseHeartbeat reads a record of the nodes bucket. gone means that the node
// said good-bye.
func parseHeartbeat(data []byte, h nats.Header) (b heartbeat, gone bool, err error) {
	if h.Get(headerKVOp) != "" || len(data) == 0 {
		return heartbeat{}, true, nil
	}
	if err := json.Unmarshal(data, &b); err != nil {
		return heartbeat{}, false, fmt.Errorf("heartbeat: %w", err)
	}
	return b, false, nil
}

// writeNodeRecord stores data under the node's name and returns its sequence.
func writeNodeRecord(ctx context.Context, js jetstream.JetStream, name string, data []byte, ttl time.Duration) (uint64, error) {
	m := nats.NewMsg(subjectPrefix(NodesBucket) + name)
	m.Data = data
	m.Header.Set(headerTTL, strconv.Itoa(int(ttl/time.Second)))
	if data == nil {
		m.Header.Set(headerKVOp, kvOpDelete)
	}
	// The next heartbeat is the retry.
	ack, err := js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, fmt.Errorf("write heartbeat: %w", err)
	}
	return ack.Sequence, nil
}

// readStamp asks the leader when it stored the record that we just wrote.
func readStamp(ctx context.Context, s jetstream.Stream, seq uint64) (counter.Instant, error) {
	m, err := s.GetMsg(ctx, seq)
	if err != nil {
		return 0, fmt.Errorf("read heartbeat back: %w", err)
	}
	return counter.InstantOf(m.Time), nil
}

// readNodes lists the heartbeats in the bucket, in no order.
func readNodes(ctx context.Context, js jetstream.JetStream) ([]heard, error) {
	kv, err := js.KeyValue(ctx, NodesBucket)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	w, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	defer func() { _ = w.Stop() }()
	var all []heard
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("list nodes: %w", ctx.Err())
		case e := <-w.Updates():
			if e == nil { // all that was there was delivered
				return all, nil
			}
			b, gone, err := parseHeartbeat(e.Value(), nil)
			if err != nil || gone {
				continue // a newer release may write what we cannot read
			}
			all = append(all, heard{name: e.Key(), beat: b, stamp: counter.InstantOf(e.Created())})
		}
	}
}
