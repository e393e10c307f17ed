package kvstore

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// simBook is one counter's page: what callers were told, and which windows the
// store opened.
type simBook struct {
	key      ratelimit.Key
	tier     ratelimit.Tier
	admitted []simAdmission // in the order in which they were answered
	windows  map[counter.Rate][]counter.Instant
	late     map[counter.Instant]bool // windows that opened long before the store heard of it
	longest  time.Duration            // from a charge to its last use, or from a call to its answer
	// forgotten: of an exchange it could not be told what became of it.
	forgotten bool
}

// simAdmission is one invocation that may run. It was decided somewhere between
// from and to.
type simAdmission struct {
	from, to counter.Instant
	life     *simLife
	cost     int64
	degraded bool
}

// book is the page of a counter. The lock is held.
func (w *simWorld) book(key ratelimit.Key) *simBook {
	b := w.books[key]
	if b == nil {
		b = &simBook{key: key, windows: make(map[counter.Rate][]counter.Instant), late: make(map[counter.Instant]bool)}
		for _, tier := range []ratelimit.Tier{ratelimit.Subject, ratelimit.Account, ratelimit.Total} {
			if strings.Contains(string(key), "."+tier.String()+".") {
				b.tier = tier
			}
		}
		w.books[key] = b
	}
	return b
}

// noteDecision writes an answer into the books of all counters that it concerned.
func (w *simWorld) noteDecision(lf *simLife, inv ratelimit.Invocation, d ratelimit.Decision, from, to counter.Instant) {
	w.decided.Add(1)
	if d.Degraded {
		w.degraded.Add(1)
	}
	if d.Outcome != ratelimit.Admitted {
		return
	}
	if d.Degraded && w.sc.policy.OnStoreFailure == ratelimit.FailDeny {
		w.fault("%s: admitted without the store", lf.node.name)
	}
	w.admitted.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, tier := range w.sc.tiersOf(inv) {
		key, _ := w.keys.Key(tier, inv.Function, ratelimit.Any, inv.Account, inv.Subject)
		b := w.book(key)
		b.longest = max(b.longest, to.Sub(from))
		b.admitted = append(b.admitted, simAdmission{from, to, lf, inv.Cost, d.Degraded})
	}
}

// written is told by the store what it applied.
func (w *simWorld) written(subject string, rec *record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.book(ratelimit.Key(strings.TrimPrefix(subject, simSubjects)))
	w.toldWrite(b, rec)
	for _, r := range w.sc.rates(b.tier) {
		win := simWindow(rec.counter, r)
		if r.Algorithm != counter.Fixed || win.Opened == 0 {
			continue
		}
		if opened := b.windows[r]; len(opened) == 0 || opened[len(opened)-1] != win.Opened {
			b.windows[r] = append(opened, win.Opened)
			b.late[win.Opened] = rec.counter.Seen.Sub(win.Opened) > w.lag()
		}
	}
}

// simSubjects is what the subjects of counters start with.
const simSubjects = "$KV." + CountersBucket + "."

// lag is how long an admission without a charge may be unknown to the store
// while all is well.
func (w *simWorld) lag() time.Duration {
	return 2*w.sc.config.SyncInterval + 2*w.sc.config.Attempt
}

func simWindow(c counter.Counter, r counter.Rate) counter.Window {
	i := slices.IndexFunc(c.Windows, func(w counter.Window) bool { return w.Period == r.Period && w.Algorithm == r.Algorithm })
	if i < 0 {
		return counter.Window{}
	}
	return c.Windows[i]
}

// exchanged looks at what a limiter was told.
func (w *simWorld) exchanged(lf *simLife, x ratelimit.Exchange, g ratelimit.Grant, err error) {
	w.tellExchange(lf, x, g, err)
	known := err == nil || errors.Is(err, ratelimit.ErrUnavailable) || errors.Is(err, ratelimit.ErrUnknown)
	if !known {
		w.fault("%s: an exchange came to %v", lf.node.name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if errors.Is(err, ratelimit.ErrForgotten) {
		w.forgotten++
		w.book(x.Key).forgotten = true
	}
	if err == nil && g.Units > 0 {
		b := w.book(x.Key)
		b.longest = max(b.longest, g.Until.Sub(g.At), w.truth.Now().Sub(g.At))
	}
}
