package ratelimit

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

const (
	// routeLife is how long a route is used before the finder is asked again,
	// so that a source which forgets and refreshes sees the function in use.
	routeLife = time.Second
	// maxFunctions and maxVersions bound the remembered routes; past them they
	// start anew.
	maxFunctions = 100_000
	maxVersions  = 1_000
)

// plan is one tier of a policy as its cells need it. A cell that meets another
// plan than the one it has adopted knows that its policy changed.
type plan struct {
	number   uint64 // later plans have higher ones
	tier     Tier
	rates    []counter.Rate
	capacity int64 // the largest cost that can ever be admitted
	life     time.Duration
	slice    time.Duration // the shortest slice of a sliding rate; 0: there is none
	fixed    bool          // some rate is a fixed window
	policy   *Policy
}

func newPlan(tier Tier, rates []counter.Rate, p *Policy, lease time.Duration, number uint64) *plan {
	if len(rates) == 0 {
		return nil
	}
	pl := &plan{number: number, tier: tier, rates: rates, capacity: counter.MaxUnits, life: lease, slice: counter.ShortestSlice(rates), policy: p}
	for _, r := range rates {
		pl.capacity = min(pl.capacity, r.Capacity())
		pl.fixed = pl.fixed || r.Algorithm == counter.Fixed
	}
	if pl.slice > 0 {
		pl.life = min(pl.life, pl.slice)
	}
	return pl
}

// decidesAs reports whether a cell decides the same under both plans.
func (p *plan) decidesAs(o *plan) bool {
	return p != nil && slices.Equal(p.rates, o.rates) &&
		p.policy.Consistency == o.policy.Consistency && p.policy.OnStoreFailure == o.policy.OnStoreFailure
}

// rateAt is the rate of an index that [counter.Counter.Limiting] returned; nil
// for none.
func (p *plan) rateAt(index int) *counter.Rate {
	if index < 0 {
		return nil
	}
	return &p.rates[index]
}

// lineup is the tiers that apply to one kind of invocation, in the order of
// decision, without those that do not apply.
type lineup struct {
	plans    []*plan
	capacity int64 // the smallest of the plans' capacities
	account  bool  // some tier counts by the account
}

// lineups are what applies without a subject, and with one.
type lineups [2]*lineup

// compiled is a policy's plans, made once for all its functions.
type compiled struct {
	policy    *Policy
	general   *lineups
	excluded  *lineups // of accounts that the account tier does not apply to
	overrides map[string]*lineups
}

func compile(p *Policy, lease time.Duration, number uint64) *compiled {
	subject := newPlan(Subject, p.Subject, p, lease, number)
	total := newPlan(Total, p.Total, p, lease, number)
	with := func(rates []counter.Rate) *lineups {
		account := newPlan(Account, rates, p, lease, number)
		return &lineups{newLineup(account, total), newLineup(subject, account, total)}
	}
	c := &compiled{policy: p, general: with(p.Account), excluded: with(nil)}
	if len(p.Overrides) > 0 {
		c.overrides = make(map[string]*lineups, len(p.Overrides))
		for account, rates := range p.Overrides {
			c.overrides[account] = with(rates)
		}
	}
	return c
}

func newLineup(plans ...*plan) *lineup {
	lu := &lineup{capacity: counter.MaxUnits}
	for _, p := range plans {
		if p == nil {
			continue
		}
		lu.plans = append(lu.plans, p)
		lu.capacity = min(lu.capacity, p.capacity)
		lu.account = lu.account || p.tier != Total
	}
	return lu
}

// lineup is the tiers that apply to one invocation. The error is a
// [*FieldError].
func (c *compiled) lineup(inv *Invocation) (*lineup, error) {
	kind := 0
	if inv.Subject != "" {
		kind = 1
	}
	lu := c.ofAccount(inv.Account)[kind]
	if inv.Account == "" && lu.account {
		return nil, &FieldError{Field: "account", Reason: "is required by the policy of the function"}
	}
	return lu, nil
}

func (c *compiled) ofAccount(account string) *lineups {
	if c.overrides != nil {
		if lus, ok := c.overrides[account]; ok {
			return lus
		}
	}
	if len(c.policy.Exclude) > 0 {
		if _, ok := c.policy.Exclude[account]; ok {
			return c.excluded
		}
	}
	return c.general
}

type routeKey struct{ function, version string }

// routes are those of one function. Most functions are asked for one version at
// a time, so the last one is at hand without a look at the others.
type routes struct {
	last   atomic.Pointer[route]
	others *xsync.Map[string, *route]
}

func newRoutes() *routes { return &routes{others: xsync.NewMap[string, *route]()} }

func (rs *routes) find(version string) *route {
	if r := rs.last.Load(); r != nil && r.version == version {
		return r
	}
	r, ok := rs.others.Load(version)
	if ok {
		rs.last.Store(r)
	}
	return r
}

func (rs *routes) store(r *route) {
	if rs.others.Size() >= maxVersions {
		rs.others.Clear()
	}
	rs.others.Store(r.version, r)
	rs.last.Store(r)
}

// route is where an invocation of a function's version is decided.
type route struct {
	version    string
	generation uint64
	expires    counter.Instant
	scope      *scope
	compiled   *compiled // nil: no policy, no limit
	degraded   bool      // there is no policy because its source failed
}

// route finds the route of a function's version, from memory when the policies
// have not changed since.
func (l *Limiter) route(ctx context.Context, function, version string, now counter.Instant) *route {
	generation := l.finder.Generation()
	rs, ok := l.routes.Load(function)
	if ok {
		if r := rs.find(version); r != nil && r.generation == generation && now < r.expires {
			return r
		}
	} else {
		if l.routes.Size() >= maxFunctions {
			l.routes.Clear()
		}
		rs, _ = l.routes.LoadOrStore(function, newRoutes())
	}
	r := l.findRoute(ctx, routeKey{function, version}, generation, now)
	rs.store(r)
	return r
}

func (l *Limiter) findRoute(ctx context.Context, key routeKey, generation uint64, now counter.Instant) *route {
	policy, degraded := l.finder.Find(ctx, key.function, key.version)
	r := &route{version: key.version, generation: generation, expires: now.Add(routeLife), degraded: degraded}
	if policy == nil {
		return r
	}
	r.compiled = l.compiledOf(policy)
	version := policy.Version
	if version != Any {
		version = key.version
	}
	r.scope, _ = l.scopes.LoadOrStore(routeKey{key.function, version}, newScope(key.function, version))
	return r
}

// compiledOf compiles a policy once. Policies are immutable, so the pointer is
// the identity; those no longer in force are forgotten with their generation.
func (l *Limiter) compiledOf(p *Policy) *compiled {
	generation := l.finder.Generation()
	if l.compiledAt.Swap(generation) != generation {
		l.compiled.Clear()
	}
	if c, ok := l.compiled.Load(p); ok {
		return c
	}
	c, _ := l.compiled.LoadOrStore(p, compile(p, l.cfg.LeaseLife, l.plans.Add(1)))
	return c
}
