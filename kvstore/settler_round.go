package kvstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Bounds of a [round].
const (
	// pauseLeast and pauseMost bound the pause after a conflict; it doubles in
	// between and any part of it may be waited. Who repeats what an owner or a
	// deputy is about to settle waits longer: those settle for all at once.
	pauseLeast  = time.Millisecond
	pauseMost   = 32 * time.Millisecond
	pauseRepeat = 8
	// patienceAttempts is how many times as long as one attempt a store may be
	// unavailable before callers are told so: a hand-over of leadership loses
	// the attempt in flight, and the next one is for the new leader.
	patienceAttempts = 3
	// triesMost bounds the conflicts in a row, for callers without a deadline.
	triesMost = 100
	// doubtAttempts is how many times as long as one attempt it may take to
	// find out what became of a write that was not acknowledged, for callers
	// without a deadline.
	doubtAttempts = 10
)

// round is one worker's way through one line. Only that worker uses it.
type round struct {
	settler *settler
	line    *line
	// mem is the record as last seen; known: it may still be so.
	mem     memory
	known   bool
	callers []*caller // whom the next step serves
	tries   int       // pauses since somebody was answered
	// failing is since when the store has been unavailable; zero: it is not.
	failing time.Time
}

// decision is what all callers of a round come to together.
type decision struct {
	counter  counter.Counter
	journal  journal
	outcomes []outcome // one for each caller
	changed  bool
	rates    [][]counter.Rate // of the exchanges that changed something
	at       counter.Instant
}

// dropGone lets go of callers who gave up.
func (r *round) dropGone() {
	r.keep(func(c *caller) bool { return !c.left() })
}

// keep lets go of the callers who do not stay.
func (r *round) keep(stays func(*caller) bool) {
	r.callers = slices.DeleteFunc(r.callers, func(c *caller) bool {
		stay := stays(c)
		if !stay {
			c.letGo()
		}
		return !stay
	})
}

// step takes the callers one step on: it answers them, or it leaves them for
// the next step, or it returns the error that all of them get.
func (r *round) step() error {
	fresh := false
	if r.tries > triesMost {
		return fmt.Errorf("%w: %d conflicts with other writers in a row", ratelimit.ErrUnavailable, r.tries)
	}
	if !r.known || r.repeats() {
		if err := r.read(); err != nil {
			return r.patience(err)
		}
		fresh = true
	}
	d := r.decide()
	if !d.changed && !fresh && time.Since(r.mem.confirmed) >= freshness {
		r.release()
		if err := r.read(); err != nil {
			return r.patience(err)
		}
		d = r.decide()
	}
	if !d.changed {
		r.reply(d)
		return nil
	}
	return r.write(d)
}

// repeats reports whether an exchange may have been settled elsewhere: then no
// memory of the record is young enough.
func (r *round) repeats() bool {
	return slices.ContainsFunc(r.callers, func(c *caller) bool { return c.way.repeated })
}

// intrudes reports whether an exchange is repeated that others are about to
// settle, and none is settled here for others.
func (r *round) intrudes() bool {
	return r.repeats() && !slices.ContainsFunc(r.callers, (*caller).served)
}

// read replaces the memory with what the store's leader says. Errors:
// [ratelimit.ErrUnavailable], [ratelimit.ErrNewerFormat].
func (r *round) read() error {
	s := r.settler
	r.known = false
	asked := time.Now()
	ctx, cancel := context.WithTimeout(s.base, s.cfg.Attempt)
	defer cancel()
	s.metrics.reads.Inc()
	v, err := s.bucket.read(ctx, r.line.key)
	if err != nil {
		return err
	}
	mem, err := remembered(v, asked)
	if err != nil {
		return err
	}
	if old := r.mem.record; mem.sequence == r.mem.sequence && mem.record.serial == old.serial {
		mem.record = old // it knows more than it tells others
	} else {
		mem.record.journal.adopt(old.journal)
	}
	r.mem, r.known = mem, true
	return nil
}

// remembered is the memory of a value that was asked for at the given time.
func remembered(v stored, asked time.Time) (memory, error) {
	if v.sequence == 0 {
		return memory{confirmed: asked}, nil
	}
	rec, err := decodeRecord(v.data)
	switch {
	case errors.Is(err, ratelimit.ErrNewerFormat):
		return memory{}, err
	case err != nil:
		return memory{}, fmt.Errorf("%w: %w", ratelimit.ErrUnavailable, err)
	}
	return memory{record: *rec, sequence: v.sequence, confirmed: asked}, nil
}

// decide claims the callers who are still there and settles their exchanges one
// after the other on the counter as remembered.
func (r *round) decide() decision {
	r.keep((*caller).take)
	d := decision{
		counter:  r.mem.record.counter.Clone(),
		journal:  r.mem.record.journal.clone(),
		outcomes: make([]outcome, len(r.callers)),
	}
	// What is let go is let go by the latest that our clock may be ahead, and
	// what is charged is charged as late as it may be behind: another node's
	// clock differs from ours, and neither may free what the other counts.
	doubt := 2 * r.settler.clock.Error()
	d.at = r.settler.clock.Now().Add(-doubt / 2)
	for i, c := range r.callers {
		d.outcomes[i] = d.settle(c, doubt)
	}
	return d
}

// clockDoubt is from which doubt of the clocks on it makes a difference to an
// exchange that leases nothing: less is within what slices round off.
const clockDoubt = 2 * time.Millisecond

// settle adds one exchange to a decision. doubt bounds how far the clocks of
// two nodes differ.
func (d *decision) settle(c *caller, doubt time.Duration) outcome {
	switch g, v := d.journal.find(c.name, c.way, doubt); v {
	case alreadySettled:
		return outcome{grant: g}
	case cannotTell:
		return outcome{err: fmt.Errorf("exchange: %w", ratelimit.ErrForgotten)}
	}
	x := c.x
	if x.Life > 0 || doubt > clockDoubt {
		x.Life = max(x.Life, doubt)
	}
	g, changed := ratelimit.Apply(&d.counter, x, d.at)
	switch {
	case !changed && !c.overdue():
		return outcome{grant: g}
	case !changed:
		d.counter.Prune(c.x.Rates, g.At)
	}
	d.changed = true
	d.rates = addRates(d.rates, c.x.Rates)
	d.journal.add(settled{name: c.name, at: g.At, units: g.Units, until: g.Until, travels: c.way.travels || c.way.recorded})
	return outcome{grant: g, applied: true}
}

// reply answers every caller. All get the counter as the last of them left it.
func (r *round) reply(d decision) {
	after := &state{counter: d.counter}
	for i, c := range r.callers {
		if d.outcomes[i].err == nil {
			d.outcomes[i].state = after
		}
		c.tell(d.outcomes[i])
	}
	r.served()
}

// fail gives every caller the same error.
func (r *round) fail(err error) {
	for _, c := range r.callers {
		c.fail(err)
	}
	r.served()
}

func (r *round) served() {
	r.callers, r.tries, r.failing = nil, 0, time.Time{}
}

// release says that nothing of what was decided was applied.
func (r *round) release() {
	for _, c := range r.callers {
		c.release()
	}
}

// patience passes an error on, unless it may pass by itself: then it pauses and
// returns nil for another step.
func (r *round) patience(err error) error {
	if !passing(err) {
		return err
	}
	if r.failing.IsZero() {
		r.failing = time.Now()
	}
	if time.Since(r.failing) >= patienceAttempts*r.settler.cfg.Attempt {
		return err
	}
	return r.pause()
}

// pause waits before another try, longer each time, for a random part so that
// two who collided do not collide again. The error is
// [ratelimit.ErrUnavailable], when the settler stops.
func (r *round) pause() error {
	most := min(pauseMost, pauseLeast<<min(r.tries, 10))
	if r.intrudes() {
		most *= pauseRepeat
	}
	r.tries++
	timer := time.NewTimer(rand.N(most))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-r.settler.base.Done():
		return errStopped
	}
}
