package kvstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Bounds of looking at counters.
const (
	// MaxListed bounds the counters that one call of [Store.Counters] returns.
	MaxListed = 10_000
	// inspectTimeout bounds a look at the store; whoever asks over the network
	// waits a little longer than that, and is told that the store is away.
	inspectTimeout = 5 * time.Second
	// askAgainAfter is how soon it is asked again whether a consumer that
	// was just made is known to the server that is asked.
	askAgainAfter = 5 * time.Millisecond
)

var (
	// ErrNoCounter: nothing was consumed under the key, or it matters no more.
	ErrNoCounter = errors.New("no such counter")
	// ErrPrefix: a prefix of keys that is not made of whole tokens.
	ErrPrefix = errors.New("prefix must be empty, or tokens of a key that each end in a dot")
)

// CounterRecord is a counter as it stands in the store, for people to look at.
type CounterRecord struct {
	Key     ratelimit.Key
	Counter counter.Counter
	// Writer is the node that wrote it last.
	Writer string
	// Sequence is that of the record in the store; it rises with every write.
	Sequence uint64
	// Written is when, by the store's clock, and Expires when the store drops
	// it; zero if it never does, which no record of this release is.
	Written, Expires time.Time
	SizeBytes        int
	// Err is why the record cannot be read, and Counter is then zero:
	// [ratelimit.ErrNewerFormat], or that it is no record at all.
	Err error
}

// Counter reads one counter, as it is after the last acknowledged write.
// Errors: [ErrNoCounter], [ratelimit.ErrUnavailable].
func (s *Store) Counter(ctx context.Context, key ratelimit.Key) (CounterRecord, error) {
	l := s.link.Load()
	if l == nil {
		return CounterRecord{}, errNotJoined
	}
	if !validKey(key) {
		return CounterRecord{}, ErrNoCounter
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	v, err := newCountersBucket(l.js, streamPrefix+CountersBucket).read(ctx, key)
	switch {
	case err != nil:
		return CounterRecord{}, err
	case v.sequence == 0:
		return CounterRecord{}, ErrNoCounter
	}
	return inspect(key, v), nil
}

// Counters lists the counters whose keys start with the prefix, which is empty
// or made with [ratelimit.FunctionPrefix] or of [ratelimit.EscapeToken] and a
// dot. It returns at most limit of them, 0 or more than [MaxListed] meaning
// that many, the longest unused first, and how many there are in all. The list
// may lag behind the last writes by some milliseconds. Errors: [ErrPrefix],
// [ratelimit.ErrUnavailable].
func (s *Store) Counters(ctx context.Context, prefix string, limit int) (list []CounterRecord, total int, err error) {
	l := s.link.Load()
	if l == nil {
		return nil, 0, errNotJoined
	}
	if !wholeTokens(prefix) {
		return nil, 0, ErrPrefix
	}
	if limit <= 0 || limit > MaxListed {
		limit = MaxListed
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTimeout)
	defer cancel()
	list, total, err = listCounters(ctx, l.js, prefix, limit)
	if err != nil {
		return nil, 0, fmt.Errorf("%w: list counters: %w", ratelimit.ErrUnavailable, err)
	}
	return list, total, nil
}

// wholeTokens reports whether a prefix ends where a token does and selects
// nothing but what starts with it.
func wholeTokens(prefix string) bool {
	if prefix == "" {
		return true
	}
	return strings.HasSuffix(prefix, ".") && !strings.HasPrefix(prefix, ".") &&
		!strings.Contains(prefix, "..") && !strings.ContainsAny(prefix, "*> \t\r\n")
}

// listCounters reads the records one after the other with a consumer of its own,
// which goes when it is done, or by itself when this node dies meanwhile.
func listCounters(ctx context.Context, js jetstream.JetStream, prefix string, limit int) ([]CounterRecord, int, error) {
	stream := streamPrefix + CountersBucket
	c, err := js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		FilterSubject:     subjectPrefix(CountersBucket) + prefix + ">",
		DeliverPolicy:     jetstream.DeliverAllPolicy,
		AckPolicy:         jetstream.AckNonePolicy,
		InactiveThreshold: inspectTimeout,
		MemoryStorage:     true,
		Replicas:          1,
	})
	if err != nil {
		return nil, 0, err
	}
	info := c.CachedInfo()
	defer func() {
		// What fails here the threshold mends.
		_ = js.DeleteConsumer(context.WithoutCancel(ctx), stream, info.Name)
	}()
	total := int(info.NumPending)
	want := min(limit, total)
	if want == 0 {
		return nil, total, nil
	}
	list, err := fetchRecords(ctx, c, want)
	// Another server may serve the consumer, and this one not have heard yet.
	for errors.Is(err, nats.ErrNoResponders) {
		select {
		case <-time.After(askAgainAfter):
		case <-ctx.Done():
			return nil, 0, errors.Join(ctx.Err(), err)
		}
		list, err = fetchRecords(ctx, c, want)
	}
	return list, total, err
}

// fetchRecords reads that many records; fewer when some expire meanwhile.
func fetchRecords(ctx context.Context, c jetstream.Consumer, want int) ([]CounterRecord, error) {
	batch, err := c.Fetch(want, jetstream.FetchContext(ctx))
	if err != nil {
		return nil, err
	}
	list := make([]CounterRecord, 0, want)
	for msg := range batch.Messages() {
		meta, err := msg.Metadata()
		if err != nil {
			return nil, err
		}
		key := strings.TrimPrefix(msg.Subject(), subjectPrefix(CountersBucket))
		list = append(list, inspect(ratelimit.Key(key), stored{
			data: msg.Data(), sequence: meta.Sequence.Stream, at: meta.Timestamp, header: msg.Headers(),
		}))
		if meta.NumPending == 0 {
			break // the rest expired
		}
	}
	return list, batch.Error()
}

// inspect reads a value of the bucket.
func inspect(key ratelimit.Key, v stored) CounterRecord {
	c := CounterRecord{Key: key, Sequence: v.sequence, Written: v.at, SizeBytes: len(v.data)}
	if ttl, ok := ttlOf(v.header); ok {
		c.Expires = v.at.Add(ttl)
	}
	rec, err := decodeRecord(v.data)
	if err != nil {
		c.Err = err
		return c
	}
	c.Counter, c.Writer = rec.counter, rec.writer
	return c
}

// ttlOf is the time to live that a record was written with.
func ttlOf(h nats.Header) (time.Duration, bool) {
	text := h.Get(jetstream.MsgTTLHeader)
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	ttl, err := time.ParseDuration(text)
	return ttl, err == nil
}
