package replay

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Config is what a caller sets. Start from [DefaultConfig]; zero bounds keep
// nothing.
type Config struct {
	// MaxDenials bounds [Result.Denials]; the totals count all of them.
	MaxDenials int
	// MaxGroups bounds [Result.Groups]; the totals count what did not fit.
	MaxGroups int
}

// DefaultConfig keeps 1000 denials and 10,000 groups.
func DefaultConfig() Config { return Config{MaxDenials: 1000, MaxGroups: 10_000} }

// Totals are what one set of policies would have answered.
type Totals struct {
	Admitted   int64 // Unlimited and Unenforced among them
	Denied     int64 // Impossible and Refused among them
	Impossible int64 // above a limit's capacity, whenever they come
	Refused    int64 // without the account that their policy counts by
	Unlimited  int64 // no policy applies
	Unenforced int64 // denied by a policy that is not enforced, and so admitted
}

// Denial is an invocation that the proposed policies would have denied.
type Denial struct {
	Line              int
	Time              time.Time
	Account           string
	Function, Version string
	Cost              int64
	Proposed          Verdict
	// InForce is the answer of the policies in force to the same invocation.
	InForce Verdict
}

// Group is the denials of one account by one rate of one policy.
type Group struct {
	Account           string
	Function, Version string // of the policy's counters; the version may be "*"
	Tier              ratelimit.Tier
	Rate              counter.Rate
	Enforced          bool
	Denied            int64 // by the proposed policies
	New               int64 // of these, the policies in force would have admitted
	First, Last       time.Time
}

// Result is what a replay came to.
type Result struct {
	Invocations int64
	OutOfOrder  int64 // lines that were older than one before them
	From, To    time.Time
	Proposed    Totals
	InForce     Totals
	// NewlyDenied and NewlyAdmitted are the invocations that the two sets
	// would have treated differently.
	NewlyDenied, NewlyAdmitted int64
	// Groups are sorted by Denied, most first. Unenforced denials are among
	// them.
	Groups []Group
	// Denials are in the order of the log; unenforced ones are among them.
	Denials []Denial
}

// sweepEvery is how many invocations pass between two looks for counters that
// may be forgotten.
const sweepEvery = 100_000

// Run replays the records through the proposed policies and those in force, and
// returns what came of them. The error is the first one that the records give,
// or the context's.
func Run(ctx context.Context, records iter.Seq2[Record, error], proposed, inForce ratelimit.Finder, cfg Config) (*Result, error) {
	r := &replayer{cfg: cfg, proposed: newEngine(proposed), inForce: newEngine(inForce), groups: map[groupKey]*Group{}}
	for record, err := range records {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		r.replay(ctx, record)
	}
	for _, g := range r.groups {
		r.result.Groups = append(r.result.Groups, *g)
	}
	slices.SortFunc(r.result.Groups, compareGroups)
	return &r.result, nil
}

type groupKey struct {
	account, function, version string
	tier                       ratelimit.Tier
	rate                       counter.Rate
	enforced                   bool
}

type replayer struct {
	cfg               Config
	proposed, inForce *engine
	groups            map[groupKey]*Group
	result            Result
}

func (r *replayer) replay(ctx context.Context, record Record) {
	res := &r.result
	if res.Invocations == 0 {
		res.From = record.Time
	}
	if record.Time.Before(res.To) {
		res.OutOfOrder++
	} else {
		res.To = record.Time
	}
	res.Invocations++
	now := counter.InstantOf(res.To)
	if res.Invocations%sweepEvery == 0 {
		r.proposed.sweep(now)
		r.inForce.sweep(now)
	}
	proposed := r.proposed.decide(ctx, record.Invocation, now)
	inForce := r.inForce.decide(ctx, record.Invocation, now)
	res.Proposed.count(proposed)
	res.InForce.count(inForce)
	switch was, will := inForce.Allowed(), proposed.Allowed(); {
	case was && !will:
		res.NewlyDenied++
	case will && !was:
		res.NewlyAdmitted++
	}
	if proposed.Outcome != ratelimit.Admitted {
		r.denied(record, res.To, proposed, inForce)
	}
}

// denied notes a denial, enforced or not.
func (r *replayer) denied(record Record, at time.Time, proposed, inForce Verdict) {
	if len(r.result.Denials) < r.cfg.MaxDenials {
		r.result.Denials = append(r.result.Denials, Denial{
			Line: record.Line, Time: at, Account: record.Account, Function: record.Function,
			Version: record.Version, Cost: record.Cost, Proposed: proposed, InForce: inForce,
		})
	}
	version := record.Version
	if proposed.Policy.Version == ratelimit.Any {
		version = ratelimit.Any
	}
	key := groupKey{record.Account, record.Function, version, proposed.Tier, proposed.Rate, !proposed.Allowed()}
	g := r.groups[key]
	if g == nil {
		if len(r.groups) >= r.cfg.MaxGroups {
			return
		}
		g = &Group{
			Account: key.account, Function: key.function, Version: version, Tier: key.tier, Rate: key.rate,
			Enforced: key.enforced, First: at,
		}
		r.groups[key] = g
	}
	g.Denied++
	g.Last = at
	if inForce.Allowed() {
		g.New++
	}
}

func (t *Totals) count(v Verdict) {
	if v.Allowed() {
		t.Admitted++
	} else {
		t.Denied++
	}
	switch {
	case v.Refused:
		t.Refused++
	case v.Policy == nil:
		t.Unlimited++
	case v.Outcome != ratelimit.Admitted && v.Policy.Shadow:
		t.Unenforced++
	case v.Outcome == ratelimit.Impossible:
		t.Impossible++
	}
}

func compareGroups(a, b Group) int {
	return cmp.Or(
		-cmp.Compare(a.Denied, b.Denied),
		cmp.Compare(a.Function, b.Function), cmp.Compare(a.Version, b.Version),
		cmp.Compare(a.Account, b.Account), cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.Rate.String(), b.Rate.String()),
		a.First.Compare(b.First),
	)
}
