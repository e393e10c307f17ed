package sim

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// ledger keeps all that was admitted and all that the store applied, by the
// true time.
type ledger struct {
	w     *world
	begin counter.Instant

	mu    sync.Mutex
	books map[ratelimit.Key]*book
	from  map[sender]*life // who sent an exchange
	order map[sender]int   // the when-th that the store applied it
	count map[place]int    // exchanges of a node on a counter

	changes [][]change // of each function's policy
}

// change is a policy that came into force.
type change struct {
	at     counter.Instant
	policy *ratelimit.Policy
}

type sender struct {
	node   string
	serial uint64
}

type place struct {
	node string
	key  ratelimit.Key
}

// book is one counter's page.
type book struct {
	key      ratelimit.Key
	function int
	tier     ratelimit.Tier
	account  string

	admitted []admission // in the order in which they were answered
	asks     []ask
	windows  map[rule][]counter.Instant // when the store's fixed windows opened
	late     map[counter.Instant]bool   // those that opened long before the store heard of it
	early    map[counter.Instant]int64  // units handed back that were dated before the window opened
	posts    []posted
	news     map[*life][]news
	sumsOf   map[*life][]sum
	put      int64         // ever charged or posted
	longest  time.Duration // from a charge to its last use, or from a call to its answer
}

// admission is one invocation that may run. It was decided somewhere between
// from and to.
type admission struct {
	from, to counter.Instant
	life     *life
	cost     int64
	degraded bool
	policy   *ratelimit.Policy
}

// ask is one invocation that reached a cell.
type ask struct {
	at     counter.Instant
	life   *life
	denied bool // by this counter, and not degraded
}

// posted is units charged after the fact, or handed back when it is negative.
type posted struct {
	life     *life
	units    int64
	order    int  // the when-th exchange it was
	answered bool // the node knows that it was applied
}

// news is an answer of the store that reached a node.
type news struct {
	asked, at, got counter.Instant
	order          int
	state          counter.Counter
}

// rule is a rate without its limit.
type rule struct {
	period    time.Duration
	algorithm counter.Algorithm
}

func ruleOf(r counter.Rate) rule { return rule{r.Period, r.Algorithm} }

func newLedger(w *world) *ledger {
	return &ledger{w: w, books: make(map[ratelimit.Key]*book), from: make(map[sender]*life), order: make(map[sender]int), count: make(map[place]int),
		changes: make([][]change, len(w.sc.functions))}
}

// book is the page of a counter. The lock is held.
func (l *ledger) book(key ratelimit.Key) *book {
	b := l.books[key]
	if b == nil {
		b = &book{key: key, function: -1, windows: make(map[rule][]counter.Instant),
			late: make(map[counter.Instant]bool), early: make(map[counter.Instant]int64), news: make(map[*life][]news)}
		l.books[key] = b
	}
	return b
}

// pages are copies of all books that an invocation is written in, for those who
// read while exchanges go on.
func (l *ledger) pages() []*book {
	l.mu.Lock()
	defer l.mu.Unlock()
	var pages []*book
	for _, b := range l.books {
		if b.function < 0 {
			continue
		}
		page := *b
		page.windows, page.late, page.news = maps.Clone(b.windows), maps.Clone(b.late), maps.Clone(b.news)
		page.early = maps.Clone(b.early)
		page.posts = slices.Clone(b.posts)
		pages = append(pages, &page)
	}
	return pages
}

// nth numbers the exchanges of a node on a counter.
func (l *ledger) nth(x ratelimit.Exchange) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := place{x.Node, x.Key}
	l.count[at]++
	return l.count[at]
}

func (l *ledger) sent(lf *life, x ratelimit.Exchange) {
	l.mu.Lock()
	defer l.mu.Unlock()
	who := sender{x.Node, x.Serial}
	if l.from[who] != nil && x.Issued == 0 { // a repeat has the serial of the first
		l.w.fault("%s: serial %d used twice", x.Node, x.Serial)
	}
	l.from[who] = lf
}

// applied is told by the store what it applied.
func (l *ledger) applied(a storetest.Applied) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.book(a.Exchange.Key)
	who := sender{a.Exchange.Node, a.Exchange.Serial}
	lf, order := l.from[who], len(l.order)+1
	l.order[who] = order
	for _, p := range a.Exchange.Posts {
		b.posts = append(b.posts, posted{life: lf, units: p.Units, order: order})
		b.put += p.Units
	}
	for _, r := range a.Exchange.Returns {
		b.posts = append(b.posts, posted{life: lf, units: -r.Units, order: order})
	}
	b.put += a.Grant.Units
	if a.Grant.Units > 0 {
		b.longest = max(b.longest, a.Grant.Until.Sub(a.Grant.At))
	}
	for _, win := range a.Grant.State.Windows {
		if win.Algorithm != counter.Fixed || win.Opened == 0 {
			continue
		}
		r := rule{win.Period, win.Algorithm}
		opened := b.windows[r]
		if len(opened) == 0 || opened[len(opened)-1] != win.Opened {
			b.windows[r] = append(opened, win.Opened)
			b.late[win.Opened] = a.Grant.At.Sub(win.Opened) > l.w.lag()
		}
		if slices.ContainsFunc(b.posts, func(p posted) bool { return p.life == lf && p.units > 0 }) {
			b.early[win.Opened] += datedBefore(win.Opened, a.Exchange.Returns)
		}
	}
}

// datedBefore is how many returned units were dated before an instant.
func datedBefore(at counter.Instant, returns []ratelimit.Return) (units int64) {
	for _, r := range returns {
		if r.Until < at {
			units += r.Units
		}
	}
	return units
}

func (l *ledger) delivered(lf *life, x ratelimit.Exchange, g ratelimit.Grant, asked counter.Instant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, now := l.book(x.Key), l.w.truth.Now()
	b.longest = max(b.longest, now.Sub(g.At))
	order := l.order[sender{x.Node, x.Serial}]
	b.news[lf] = append(b.news[lf], news{asked: asked, at: g.At, got: now, order: order, state: g.State.Clone()})
	for i := len(b.posts) - 1; i >= 0 && len(x.Posts)+len(x.Returns) > 0; i-- {
		if b.posts[i].order == order {
			b.posts[i].answered = true
		}
	}
}

// decided writes an answer into the books of all counters that it concerned.
func (l *ledger) decided(lf *life, inv ratelimit.Invocation, d ratelimit.Decision, from, to counter.Instant) {
	if inv.Cost == 0 || d.Outcome == ratelimit.Impossible {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, tier := range tiers {
		if tier == ratelimit.Subject && inv.Subject == "" || len(ratesOf(d.Policy, tier, inv.Account)) == 0 {
			continue
		}
		key, ok := l.w.keys.Key(tier, inv.Function, d.Policy.Version, inv.Account, inv.Subject)
		if !ok {
			l.w.fault("no key")
			return
		}
		b := l.book(key)
		b.function, b.tier, b.account = l.w.functionOf(inv.Function), tier, inv.Account
		b.asks = append(b.asks, ask{at: to, life: lf, denied: d.Outcome == ratelimit.Denied && d.Tier == tier && !d.Degraded})
		if d.Outcome == ratelimit.Admitted {
			b.longest = max(b.longest, to.Sub(from))
			b.admitted = append(b.admitted, admission{from, to, lf, inv.Cost, d.Degraded, d.Policy})
		}
		if d.Outcome == ratelimit.Denied && d.Tier == tier {
			return // the tiers behind were not asked
		}
	}
}

func (w *world) functionOf(name string) int {
	for i, f := range w.sc.functions {
		if f.name == name {
			return i
		}
	}
	return -1
}
