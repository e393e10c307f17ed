package kvstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// letter is one record on its way into the bucket. A second copy of it is the
// same bytes with the same expected sequence, so that it does no harm however
// many of them arrive.
type letter struct {
	record   record
	data     []byte
	ttl      time.Duration
	expected uint64
}

// write puts a decision into the bucket. It answers the callers, or leaves them
// for another step after a conflict, or returns the error that all of them get.
func (r *round) write(d decision) error {
	l, err := r.seal(d)
	if err != nil {
		r.release()
		return fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, err)
	}
	err = r.send(l)
	switch {
	case err == nil:
		r.reply(d)
		return nil
	case errors.Is(err, errConflict):
		r.settler.metrics.conflicts.Inc()
		r.known = false
		r.release()
		return r.pause()
	case errors.Is(err, errDoubt):
		return r.resolve(l, d, err)
	default:
		r.release()
		return r.patience(err)
	}
}

// seal makes the record of a decision.
func (r *round) seal(d decision) (letter, error) {
	l := letter{
		record: record{
			counter: d.counter,
			writer:  r.settler.cfg.Node,
			serial:  r.settler.serial.Add(1),
			journal: d.journal,
		},
		ttl:      timeToLive(d.counter, d.rates, d.at) + allowance(r.settler.cfg.Apart()),
		expected: r.mem.sequence,
	}
	var err error
	l.data, err = l.record.encode()
	return l, err
}

// send makes one attempt; after a success the letter is what the round
// remembers. Errors: those of [countersBucket.write].
func (r *round) send(l letter) error {
	s := r.settler
	sent := time.Now()
	ctx, cancel := context.WithTimeout(s.base, s.cfg.Attempt)
	defer cancel()
	s.metrics.writes.Inc()
	sequence, err := s.bucket.write(ctx, r.line.key, l.data, l.ttl, l.expected)
	if err != nil {
		return err
	}
	r.mem, r.known = memory{record: l.record, sequence: sequence, confirmed: sent}, true
	return nil
}

// resolve finds out what became of a letter that was not acknowledged: it reads
// the record until it can tell, and sends the same letter again while the record
// stands as it was.
func (r *round) resolve(l letter, d decision, cause error) error {
	r.settler.metrics.doubts.Inc()
	began := time.Now()
	for try := 0; r.awaited() && time.Since(began) < doubtAttempts*r.settler.cfg.Attempt; try++ {
		if try > 0 && r.pause() != nil {
			break
		}
		if r.read() != nil {
			continue
		}
		switch {
		case r.mem.record.serial == l.record.serial && r.mem.record.writer == l.record.writer:
			r.mem.record = l.record // it knows more than it tells others
			r.reply(d)
			return nil
		case r.mem.sequence != l.expected:
			r.recall(d, cause)
			return nil
		case r.send(l) == nil:
			r.reply(d)
			return nil
		}
	}
	r.known = false
	return fmt.Errorf("%w: %w", ratelimit.ErrUnknown, cause)
}

// recall is for a letter that can no longer be applied: another write came behind
// it, or instead of it. Which of its exchanges were applied is in the record, so
// the next step asks that, as for an exchange that comes a second time.
func (r *round) recall(d decision, cause error) {
	r.callers = slices.DeleteFunc(r.callers, func(c *caller) bool {
		told := c.doubt(d.at)
		if !told {
			c.fail(fmt.Errorf("%w: %w", ratelimit.ErrUnknown, cause))
		}
		return !told
	})
	r.tries++
}

// awaited reports whether anybody still waits for the answer.
func (r *round) awaited() bool {
	for _, c := range r.callers {
		if c.ended() == nil {
			return true
		}
	}
	return false
}
