package kvstore

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/headgate-io/headgate/kvstore/recordpb"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// recordFormat is the layout this release writes. It is raised when an older
// release could misread what a newer one writes.
const recordFormat = 1

// errGarbage: the value of a counter's key is not a record.
var errGarbage = errors.New("not a counter's record")

// record is a counter as it stands in the bucket.
type record struct {
	counter counter.Counter
	writer  string // the node that wrote it
	serial  uint64 // the writer's own number of this write
	journal journal
}

// encode is the record as the bucket holds it. Settlements that nobody can
// repeat over another way are left out.
func (r *record) encode() ([]byte, error) {
	pb := &recordpb.Record{
		Format:  recordFormat,
		Counter: counterToWire(r.counter),
		Writer:  r.writer,
		Serial:  r.serial,
	}
	r.journal.encode(pb, r.counter.Seen)
	data, err := proto.Marshal(pb)
	if err != nil {
		return nil, fmt.Errorf("encode record: %w", err)
	}
	return data, nil
}

// decodeRecord reads a value of the bucket. Errors: [ratelimit.ErrNewerFormat],
// errGarbage.
func decodeRecord(data []byte) (*record, error) {
	format, ok := peekFormat(data)
	switch {
	case !ok || format == 0:
		return nil, fmt.Errorf("%w: no format in %d bytes", errGarbage, len(data))
	case format > recordFormat:
		return nil, fmt.Errorf("%w: format %d, this release knows %d", ratelimit.ErrNewerFormat, format, recordFormat)
	}
	var pb recordpb.Record
	if err := proto.Unmarshal(data, &pb); err != nil {
		return nil, fmt.Errorf("%w: %w", errGarbage, err)
	}
	c, err := counterFromWire(pb.GetCounter())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGarbage, err)
	}
	j, err := decodeJournal(&pb, c.Seen)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errGarbage, err)
	}
	return &record{counter: c, writer: pb.GetWriter(), serial: pb.GetSerial(), journal: j}, nil
}

// peekFormat reads the format alone. It stands first in every record, so that a
// layout which this release cannot read is still known for a newer one.
func peekFormat(data []byte) (uint64, bool) {
	num, kind, n := protowire.ConsumeTag(data)
	if n < 0 || num != 1 || kind != protowire.VarintType {
		return 0, false
	}
	format, n := protowire.ConsumeVarint(data[n:])
	return format, n >= 0
}

func counterToWire(c counter.Counter) *recordpb.Counter {
	pb := &recordpb.Counter{Seen: uint64(c.Seen)}
	if len(c.Windows) > 0 {
		pb.Windows = make([]*recordpb.Window, 0, len(c.Windows))
	}
	for i := range c.Windows {
		pb.Windows = append(pb.Windows, windowToWire(&c.Windows[i]))
	}
	return pb
}

func windowToWire(w *counter.Window) *recordpb.Window {
	pb := &recordpb.Window{
		Period:    uint64(w.Period),
		Algorithm: uint32(w.Algorithm),
		Opened:    uint64(w.Opened),
		Owed:      w.Owed,
		Part:      w.Part,
	}
	if len(w.Slots) > 0 {
		pb.Slots = make([]int64, 0, 2*len(w.Slots))
	}
	var before int64
	for _, s := range w.Slots {
		pb.Slots = append(pb.Slots, s.Slice-before, s.Units)
		before = s.Slice
	}
	return pb
}

// counterFromWire is strict: arithmetic on a state that no counter can reach
// would admit or deny at random.
func counterFromWire(pb *recordpb.Counter) (counter.Counter, error) {
	if pb == nil {
		return counter.Counter{}, errors.New("no counter")
	}
	c := counter.Counter{Seen: counter.Instant(pb.GetSeen())}
	if n := len(pb.GetWindows()); n > 0 {
		c.Windows = make([]counter.Window, 0, n)
	}
	for i, wpb := range pb.GetWindows() {
		w, err := windowFromWire(wpb)
		if err != nil {
			return counter.Counter{}, fmt.Errorf("window %d: %w", i, err)
		}
		c.Windows = append(c.Windows, w)
	}
	if err := c.Validate(); err != nil {
		return counter.Counter{}, err
	}
	return c, nil
}

// windowFromWire checks only what the types do not hold; [counter.Counter]
// validates the rest.
func windowFromWire(pb *recordpb.Window) (counter.Window, error) {
	if pb.GetAlgorithm() > math.MaxUint8 {
		return counter.Window{}, fmt.Errorf("algorithm %d is unknown", pb.GetAlgorithm())
	}
	pairs := pb.GetSlots()
	if len(pairs)%2 != 0 {
		return counter.Window{}, fmt.Errorf("%d numbers are no pairs of slice and units", len(pairs))
	}
	w := counter.Window{
		Period:    time.Duration(pb.GetPeriod()),
		Algorithm: counter.Algorithm(pb.GetAlgorithm()),
		Opened:    counter.Instant(pb.GetOpened()),
		Owed:      pb.GetOwed(),
		Part:      pb.GetPart(),
	}
	if len(pairs) > 0 {
		w.Slots = make([]counter.Slot, 0, len(pairs)/2)
	}
	var slice int64
	for i := 0; i < len(pairs); i += 2 {
		slice += pairs[i]
		w.Slots = append(w.Slots, counter.Slot{Slice: slice, Units: pairs[i+1]})
	}
	return w, nil
}
