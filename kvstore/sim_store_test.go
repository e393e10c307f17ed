package kvstore

import (
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/headgate-io/headgate/kvstore/recordpb"
)

// simStore is the counters' stream in memory: one value per subject, with the
// stream's sequence and an expiry.
type simStore struct {
	tamper  simTamper
	observe func(subject string, rec *record) // called for each write that is applied

	mu        sync.Mutex
	sequence  uint64
	values    map[string]simValue
	conflicts int
}

type simValue struct {
	stored
	expires time.Time
}

// simTamper breaks the store on purpose.
type simTamper struct {
	anySequence bool // writes are taken whatever sequence they expect
	noJournal   bool // reads do not show what was settled lately
	loseSeventh bool // each seventh write is acknowledged and not applied
}

func newSimStore(tm simTamper, observe func(string, *record)) *simStore {
	return &simStore{tamper: tm, observe: observe, values: make(map[string]simValue)}
}

// value is what a subject holds now. The lock is held.
func (s *simStore) value(subject string) stored {
	v, ok := s.values[subject]
	if !ok || !time.Now().Before(v.expires) {
		delete(s.values, subject)
		return stored{}
	}
	return v.stored
}

// record is a subject's record; nil when there is none.
func (s *simStore) record(subject string) *record {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.value(subject)
	if v.sequence == 0 {
		return nil
	}
	rec, err := decodeRecord(v.data)
	if err != nil {
		panic(err) // it was read when it was written
	}
	return rec
}

// get answers a read as the stream's leader does.
func (s *simStore) get(request []byte) []byte {
	var q struct {
		Subject string `json:"last_by_subj"`
	}
	if err := json.Unmarshal(request, &q); err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.value(q.Subject)
	var a map[string]any
	if v.sequence == 0 {
		a = map[string]any{"error": jetstream.APIError{Code: 404, ErrorCode: jetstream.JSErrCodeMessageNotFound}}
	} else {
		a = map[string]any{"message": map[string]any{"seq": v.sequence, "data": s.tamper.shown(v.data), "time": v.at}}
	}
	data, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return data
}

// put is a publish that expects a sequence.
func (s *simStore) put(msg *nats.Msg) (*jetstream.PubAck, error) {
	expected, err := strconv.ParseUint(msg.Header.Get(jetstream.ExpectedLastSubjSeqHeader), 10, 64)
	if err != nil {
		panic(err)
	}
	seconds, err := strconv.Atoi(msg.Header.Get(jetstream.MsgTTLHeader))
	if err != nil || seconds < 1 {
		panic("a counter without an expiry")
	}
	rec, err := decodeRecord(msg.Data)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.value(msg.Subject).sequence != expected && !s.tamper.anySequence {
		s.conflicts++
		return nil, &jetstream.APIError{ErrorCode: codeWrongSequence}
	}
	s.sequence++
	if s.tamper.loseSeventh && s.sequence%7 == 0 {
		return &jetstream.PubAck{Sequence: s.sequence}, nil
	}
	now := time.Now()
	s.values[msg.Subject] = simValue{
		stored:  stored{data: msg.Data, sequence: s.sequence, at: now},
		expires: now.Add(time.Duration(seconds) * time.Second),
	}
	s.observe(msg.Subject, rec)
	return &jetstream.PubAck{Sequence: s.sequence}, nil
}

// shown is a record as a reader sees it.
func (tm simTamper) shown(data []byte) []byte {
	if !tm.noJournal {
		return data
	}
	var pb recordpb.Record
	if err := proto.Unmarshal(data, &pb); err != nil {
		panic(err)
	}
	pb.Settled, pb.SettledGrants, pb.Forgotten = nil, nil, 0
	data, err := proto.Marshal(&pb)
	if err != nil {
		panic(err)
	}
	return data
}
