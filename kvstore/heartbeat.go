package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

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

// readsAtOnce bounds the reads of one list of nodes.
const readsAtOnce = 64

// readNodes lists the heartbeats in the bucket, in no order. The bucket's leader
// answers: a consumer may be placed on a server that is behind, and a node that
// learns of none of the others takes any server's wall clock for the store's.
func readNodes(ctx context.Context, js jetstream.JetStream) ([]heard, error) {
	all, err := readHeartbeats(ctx, js)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	return slices.DeleteFunc(all, func(h heard) bool { return h.name == "" }), nil
}

// readHeartbeats is readNodes with empty places where there was nothing to read.
func readHeartbeats(ctx context.Context, js jetstream.JetStream) ([]heard, error) {
	stream, err := js.Stream(ctx, streamPrefix+NodesBucket)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(subjectsOf(NodesBucket)))
	if err != nil {
		return nil, err
	}
	all := make([]heard, len(info.State.Subjects))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(readsAtOnce)
	i := 0
	for subject := range info.State.Subjects {
		place := &all[i]
		i++
		g.Go(func() (err error) {
			*place, err = readHeartbeat(ctx, stream, subject)
			return err
		})
	}
	return all, g.Wait()
}

// readHeartbeat reads one heartbeat; what is not there, is gone or cannot be read
// has no name.
func readHeartbeat(ctx context.Context, stream jetstream.Stream, subject string) (heard, error) {
	m, err := stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) { // it expired meanwhile
		return heard{}, nil
	}
	if err != nil {
		return heard{}, err
	}
	b, gone, err := parseHeartbeat(m.Data, m.Header)
	if err != nil || gone {
		return heard{}, nil // a newer release may write what we cannot read
	}
	name := strings.TrimPrefix(subject, subjectPrefix(NodesBucket))
	return heard{name: name, beat: b, stamp: counter.InstantOf(m.Time)}, nil
}
