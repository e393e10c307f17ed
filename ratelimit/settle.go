package ratelimit

import (
	"github.com/headgate-io/headgate/ratelimit/counter"
)

const (
	// aheadShare is the part of what is left that one exchange may take ahead
	// of need: leases shrink as the limit nears.
	aheadShare = 4
	// aheadFrom is how much must be left for anything to be taken ahead: the
	// last units, and all those of a small limit, are taken one by one by whoever
	// needs them, so that no node that dies strands any.
	aheadFrom = 64
)

// Settle decides one exchange against a counter at an instant of the store's
// clock. It is the one rule that every [Store] applies; it is pure, so that a
// compare-and-swap loop may run it again.
//
// It returns the counter after the exchange, which shares no memory with c, the
// grant, and whether anything changed: when it did not, there is nothing to
// write. The exchange's Rates must not be empty.
func Settle(c counter.Counter, x Exchange, now counter.Instant) (counter.Counter, Grant, bool) {
	next := c.Clone()
	g, changed := Apply(&next, x, now)
	g.State = next.Clone()
	return next, g, changed
}

// Apply is [Settle] in place, for those who settle many exchanges of one counter
// at once. It leaves the grant's State empty, and c as it is where nothing
// changed.
func Apply(c *counter.Counter, x Exchange, now counter.Instant) (Grant, bool) {
	now = max(now, c.Seen)
	changed := giveBack(c, x, now)

	free := c.Available(x.Rates, now)
	served := serve(x.Needs, free)
	var ahead int64
	if left := free - served; left >= aheadFrom {
		ahead = max(0, min(x.Want, left/aheadShare))
	}
	until := c.LeaseEnd(x.Rates, now, x.Life)
	units := served + ahead
	if units > 0 {
		c.Charge(x.Rates, units, now, until)
		changed = true
	}
	if changed {
		c.Prune(x.Rates, now)
	}
	return Grant{Units: units, Until: until, At: now}, changed
}

// giveBack applies all that an exchange brings: an operator's reset and extra
// units, returns, posts. It reports whether there was anything.
func giveBack(c *counter.Counter, x Exchange, now counter.Instant) bool {
	if x.Reset {
		c.Reset()
	}
	for _, r := range x.Returns {
		c.Refund(x.Rates, r.Units, r.Until, now)
	}
	for _, p := range x.Posts {
		c.Post(x.Rates, p.Units, p.At, now)
	}
	if x.Add > 0 {
		c.Credit(x.Rates, x.Add, now)
	}
	return x.Reset || x.Add > 0 || len(x.Returns) > 0 || len(x.Posts) > 0
}

// serve walks the needs in order and gives each the units it asks for if they
// are still there; it returns what they come to. A need that does not fit is
// passed over, and a cheaper one behind it may still be served.
//
// The node runs the same walk over the same needs with the granted units and
// finds the same ones served: whoever did not fit into free does not fit into
// what the others took.
func serve(needs []Need, free int64) int64 {
	var taken int64
	for _, n := range needs {
		if n.Cost > 0 {
			taken += n.Cost * min(n.Count, (free-taken)/n.Cost)
		}
	}
	return taken
}
