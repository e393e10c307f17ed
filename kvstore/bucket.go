package kvstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
)

// What an attempt on the bucket may come to, beside success and
// [ratelimit.ErrUnavailable].
var (
	// errConflict: the key's sequence is not the expected one, or another write
	// of the key is in flight. Nothing was applied.
	errConflict = errors.New("conflict")
	// errDoubt: the write was sent and may have been applied, or may still be.
	errDoubt = errors.New("no acknowledgement")
)

// JetStream's answers that mean errConflict: the first from one replica, the
// second from several.
const (
	codeWrongSequence         = 10071
	codeWrongSequenceConstant = 10164
)

// countersBucket reads and writes the values of the counters bucket. Every
// attempt is bounded by its context; the bucket itself retries nothing.
type countersBucket struct {
	js       jetstream.JetStream
	nc       wire   // the connection of js
	subjects string // what all subjects of the bucket start with
	getAPI   string // where the stream's leader answers reads
}

// stored is a value of the bucket; the zero stored is a key without one.
type stored struct {
	data     []byte
	sequence uint64
	at       time.Time // when the store took it
	header   nats.Header
}

func newCountersBucket(js jetstream.JetStream, stream string) *countersBucket {
	prefix := js.Options().APIPrefix
	if prefix == "" {
		prefix = jetstream.DefaultAPIPrefix
	}
	return &countersBucket{
		js:       js,
		nc:       js.Conn(),
		subjects: "$KV." + strings.TrimPrefix(stream, "KV_") + ".",
		getAPI:   strings.TrimSuffix(prefix, ".") + ".STREAM.MSG.GET." + stream,
	}
}

// getAnswer is what the stream's leader says to a read.
type getAnswer struct {
	Error   *jetstream.APIError `json:"error"`
	Message *struct {
		Sequence uint64    `json:"seq"`
		Header   []byte    `json:"hdrs"`
		Data     []byte    `json:"data"`
		Time     time.Time `json:"time"`
	} `json:"message"`
}

// read returns the value of a key from the stream's leader: a direct read may
// come from a replica that lags behind an acknowledged write. The error is
// [ratelimit.ErrUnavailable].
func (b *countersBucket) read(ctx context.Context, key ratelimit.Key) (stored, error) {
	if !b.nc.IsConnected() {
		return stored{}, fmt.Errorf("%w: read counter: %w", ratelimit.ErrUnavailable, nats.ErrDisconnected)
	}
	request := `{"last_by_subj":` + strconv.Quote(b.subjects+string(key)) + `}`
	msg, err := b.nc.RequestWithContext(ctx, b.getAPI, []byte(request))
	if err != nil {
		return stored{}, fmt.Errorf("%w: read counter: %w", ratelimit.ErrUnavailable, err)
	}
	s, err := parseGetAnswer(msg.Data)
	if err != nil {
		return stored{}, fmt.Errorf("%w: read counter: %w", ratelimit.ErrUnavailable, err)
	}
	return s, nil
}

func parseGetAnswer(data []byte) (stored, error) {
	var a getAnswer
	if err := json.Unmarshal(data, &a); err != nil {
		return stored{}, fmt.Errorf("answer of the store: %w", err)
	}
	switch {
	case a.Error != nil && a.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return stored{}, nil
	case a.Error != nil:
		return stored{}, a.Error
	case a.Message == nil || a.Message.Sequence == 0:
		return stored{}, errors.New("answer of the store: no message in it")
	}
	s := stored{data: a.Message.Data, sequence: a.Message.Sequence, at: a.Message.Time}
	if len(a.Message.Header) > 0 {
		header, err := nats.DecodeHeadersMsg(a.Message.Header)
		if err != nil {
			return stored{}, fmt.Errorf("answer of the store: %w", err)
		}
		s.header = header
	}
	return s, nil
}

// write puts a value if the key's sequence is the expected one (0: it has no
// value), and returns its new sequence. ttl is cut to whole seconds and must be
// at least one. Errors: errConflict, errDoubt, [ratelimit.ErrUnavailable].
func (b *countersBucket) write(
	ctx context.Context, key ratelimit.Key, data []byte, ttl time.Duration, expected uint64,
) (uint64, error) {
	if !b.nc.IsConnected() {
		return 0, fmt.Errorf("%w: write counter: %w", ratelimit.ErrUnavailable, nats.ErrDisconnected)
	}
	msg := &nats.Msg{
		Subject: b.subjects + string(key),
		Data:    data,
		Header: nats.Header{
			jetstream.ExpectedLastSubjSeqHeader: {strconv.FormatUint(expected, 10)},
			jetstream.MsgTTLHeader:              {strconv.FormatInt(int64(ttl/time.Second), 10)},
		},
	}
	ack, err := b.js.PublishMsg(ctx, msg, jetstream.WithRetryAttempts(0))
	if err != nil {
		return 0, fmt.Errorf("%w: write counter: %w", writeFault(err), err)
	}
	return ack.Sequence, nil
}

// writeFault says what an error of a publish means for the record.
func writeFault(err error) error {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api):
		if api.ErrorCode == codeWrongSequence || api.ErrorCode == codeWrongSequenceConstant {
			return errConflict
		}
		return errDoubt // refused, and the store does not promise that it was not stored
	case errors.Is(err, jetstream.ErrNoStreamResponse),
		errors.Is(err, nats.ErrReconnectBufExceeded),
		errors.Is(err, nats.ErrConnectionDraining),
		errors.Is(err, nats.ErrMaxPayload),
		errors.Is(err, nats.ErrInvalidConnection):
		return ratelimit.ErrUnavailable // it reached no stream
	default:
		return errDoubt
	}
}

// passing reports whether an unavailable store may be back soon: a stream that
// changes its leader has nobody to answer for some milliseconds.
func passing(err error) bool {
	return errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders) ||
		errors.Is(err, context.DeadlineExceeded)
}
