package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// MaxLineBytes bounds a line of a log.
const MaxLineBytes = 64 << 10

// ErrRecord: a line of the log cannot be replayed; the error is a
// [*RecordError].
var ErrRecord = errors.New("invalid record")

// RecordError is one fault of one line. It wraps [ErrRecord]. It holds no
// value, for that may be personal data.
type RecordError struct {
	Line   int    // counts from 1
	Field  string // empty: the line as a whole
	Reason string
}

func (e *RecordError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("line %d: %s", e.Line, e.Reason)
	}
	return fmt.Sprintf("line %d: %s: %s", e.Line, e.Field, e.Reason)
}

// Unwrap makes errors.Is(err, ErrRecord) true.
func (e *RecordError) Unwrap() error { return ErrRecord }

// Record is an invocation and when it was made.
type Record struct {
	Line int // of the log, counting from 1; 0 when there is none
	Time time.Time
	ratelimit.Invocation
}

// Read reads a log line by line; empty lines are skipped. A line that cannot be
// read comes as a [*RecordError] and the reading goes on with the next one, so
// the caller decides whether to go on; the error of r ends it.
func Read(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(make([]byte, 0, 4096), MaxLineBytes)
		n := 0
		for lines.Scan() {
			n++
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			if !yield(readLine(n, lines.Bytes())) {
				return
			}
		}
		switch err := lines.Err(); {
		case errors.Is(err, bufio.ErrTooLong):
			yield(Record{}, &RecordError{n + 1, "", fmt.Sprintf("is longer than %d bytes", MaxLineBytes)})
		case err != nil:
			yield(Record{}, fmt.Errorf("replay: read the log: %w", err))
		}
	}
}

// line is a record as it is written. Pointers tell what is missing.
type line struct {
	Time     json.RawMessage `json:"time"`
	Account  string          `json:"account"`
	Function string          `json:"function"`
	Version  string          `json:"version"`
	Subject  string          `json:"subject"`
	Cost     *int64          `json:"cost"`
}

func readLine(n int, text []byte) (Record, error) {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return Record{}, &RecordError{n, wrong.Field, "must not be a " + wrong.Value}
		}
		return Record{}, &RecordError{n, "", "is not a JSON object"}
	}
	at, reason := readTime(l.Time)
	switch {
	case reason != "":
		return Record{}, &RecordError{n, "time", reason}
	case l.Function == "":
		return Record{}, &RecordError{n, "function", "is required"}
	case l.Cost != nil && (*l.Cost < 0 || *l.Cost > counter.MaxUnits):
		return Record{}, &RecordError{n, "cost", fmt.Sprintf("must be from 0 to %d", counter.MaxUnits)}
	}
	cost := int64(1)
	if l.Cost != nil {
		cost = *l.Cost
	}
	return Record{Line: n, Time: at, Invocation: ratelimit.Invocation{
		Account: l.Account, Function: l.Function, Version: l.Version, Subject: l.Subject, Cost: cost,
	}}, nil
}

// maxSeconds ends the instants that fit into nanoseconds, in 2262.
const maxSeconds = 9_000_000_000

func readTime(raw json.RawMessage) (at time.Time, reason string) {
	const form = "must be RFC 3339, or seconds since 1970"
	if len(raw) == 0 {
		return at, "is required"
	}
	var seconds float64
	if json.Unmarshal(raw, &seconds) == nil {
		if seconds <= 0 || seconds > maxSeconds {
			return at, form
		}
		whole := int64(seconds)
		return time.Unix(whole, int64((seconds-float64(whole))*1e9)), ""
	}
	if json.Unmarshal(raw, &at) != nil || at.Unix() <= 0 || at.Unix() > maxSeconds {
		return at, form
	}
	return at, ""
}
