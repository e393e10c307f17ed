package kvstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
)

// The buckets. Each is a stream named with streamPrefix and a key-value bucket
// of that name for every client of NATS.
const (
	CountersBucket = "headgate_counters" // what was consumed; each record expires
	NodesBucket    = "headgate_nodes"    // heartbeats; each record expires
	PoliciesBucket = "headgate_policies" // limits, with their last versions
	settingsBucket = "headgate_settings" // what all nodes must agree on

	streamPrefix = "KV_"
)

// formatKey is where a bucket's metadata tells the format of its records, and
// bucketFormat the one that this release writes. A node that meets a newer one
// leaves the bucket alone.
const (
	formatKey    = "headgate-format"
	bucketFormat = 1
)

// policyHistory is how many versions of a policy are kept for people to see.
const policyHistory = 5

// subjectsOf is the subject filter of a bucket's keys.
func subjectsOf(bucket string) string { return subjectPrefix(bucket) + ">" }

// subjectPrefix goes before a key to make it the subject of its record.
func subjectPrefix(bucket string) string { return "$KV." + bucket + "." }

// bucketNames lists the buckets in the order in which they are made.
func bucketNames() []string {
	return []string{CountersBucket, NodesBucket, settingsBucket, PoliciesBucket}
}

// lasting reports whether a server must hold what a bucket held before it is
// counted on. Heartbeats are sent anew all the time, what a server missed of them
// has expired, and it may take its leader five seconds to find that out.
func lasting(bucket string) bool { return bucket != NodesBucket }

// bucketConfig is a bucket's stream as it must be.
//
// Per-message expiry without delete markers: a marker of an expiry may land on
// top of a write that came at the same time, and so undo it. No direct reads:
// they may be answered by a replica that is behind.
func bucketConfig(bucket string, replicas int) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              streamPrefix + bucket,
		Description:       "Headgate, see its documentation before changing anything",
		Subjects:          []string{subjectsOf(bucket)},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew,
		MaxMsgsPerSubject: 1,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxMsgSize:        -1,
		MaxConsumers:      -1,
		Storage:           jetstream.FileStorage,
		Replicas:          replicas,
		DenyDelete:        true,
		AllowRollup:       true,
		AllowDirect:       false,
		AllowMsgTTL:       bucket == CountersBucket || bucket == NodesBucket,
		Metadata:          map[string]string{formatKey: strconv.Itoa(bucketFormat)},
	}
	if bucket == PoliciesBucket {
		c.MaxMsgsPerSubject = policyHistory
	}
	return c
}

// openBucket makes the bucket, or repairs what may be repaired of one that is
// there. Replicas are raised and never lowered. Errors:
// [ratelimit.ErrNewerFormat], a [*settingsError], those of JetStream.
func openBucket(ctx context.Context, js jetstream.JetStream, bucket string, replicas int) (*jetstream.StreamInfo, error) {
	want := bucketConfig(bucket, replicas)
	info, err := bucketInfo(ctx, js, bucket)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		// Another node may make it at the same time, with the same settings.
		if _, err = js.CreateStream(ctx, want); err != nil {
			return nil, fmt.Errorf("create bucket %s: %w", bucket, err)
		}
		info, err = bucketInfo(ctx, js, bucket)
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %s: %w", bucket, err)
	}
	if err := checkFormat(bucket, info.Config.Metadata); err != nil {
		return nil, err
	}
	if err := fixedFaults(bucket, info.Config, want); err != nil {
		return nil, err
	}
	repaired, changed := repair(info.Config, want)
	if !changed {
		return info, nil
	}
	if _, err := js.UpdateStream(ctx, repaired); err != nil {
		return nil, fmt.Errorf("repair bucket %s: %w", bucket, err)
	}
	return bucketInfo(ctx, js, bucket)
}

// bucketInfo asks for the bucket's stream as it is now.
func bucketInfo(ctx context.Context, js jetstream.JetStream, bucket string) (*jetstream.StreamInfo, error) {
	s, err := js.Stream(ctx, streamPrefix+bucket)
	if err != nil {
		return nil, err
	}
	return s.CachedInfo(), nil
}

// checkFormat refuses a bucket of a newer release.
func checkFormat(bucket string, metadata map[string]string) error {
	text, ok := metadata[formatKey]
	if !ok {
		return nil // made by hand; repair adds it
	}
	format, err := strconv.Atoi(text)
	if err != nil || format > bucketFormat {
		return fmt.Errorf("bucket %s has format %q, this release writes %d: %w",
			bucket, text, bucketFormat, ratelimit.ErrNewerFormat)
	}
	return nil
}
