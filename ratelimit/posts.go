package ratelimit

import (
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// maxPosts bounds what a cell remembers of admissions that are still to be
// charged. Past it the two oldest become one, dated as the later of them: held
// a little too long rather than let go too soon.
const maxPosts = 256

// post notes units that were admitted no later than `at` without a charge. The
// lock is held.
func (c *cell) post(units int64, at, now counter.Instant) {
	if units <= 0 {
		return
	}
	w, p := c.busy(), c.plan.Load()
	if w.view != nil {
		w.view.Post(p.rates, units, at, now)
	}
	if w.outage != nil {
		w.outage.admitted(p, units, at, now)
	}
	last := len(w.posts) - 1
	if last >= 0 && mergeable(p, w.postedFrom, at) {
		w.posts[last].Units += units
		w.posts[last].At = max(w.posts[last].At, at)
		return
	}
	w.postedFrom = at
	w.posts = append(w.posts, Post{Units: units, At: at})
	if len(w.posts) > maxPosts {
		w.posts[1].Units += w.posts[0].Units
		w.posts = append(w.posts[:0], w.posts[1:]...)
	}
}

// mergeable reports whether two admissions may be posted as one: those that
// count in the same slices. Those of a fixed window keep their own instants, for
// a later one may belong to the next window.
func mergeable(p *plan, first, later counter.Instant) bool {
	switch {
	case p.fixed:
		return later == first
	case p.slice > 0:
		return int64(later)/int64(p.slice) == int64(first)/int64(p.slice)
	default:
		return later.Sub(first) < p.life
	}
}

// unpost undoes a post that did not travel yet.
func (w *work) unpost(units int64, at counter.Instant) bool {
	for i := range w.posts {
		if p := &w.posts[i]; p.At >= at && p.Units >= units {
			p.Units -= units
			if p.Units == 0 {
				w.posts = append(w.posts[:i], w.posts[i+1:]...)
			}
			return true
		}
	}
	return false
}

// owed is how many units the cell has to hand back or to post, or may have to:
// as long as it is not known whether they were charged.
func (c *cell) owed() int64 {
	if c.work == nil {
		return 0
	}
	var units int64
	if ls := c.lease.Load(); ls != nil && ls.charged == 0 {
		units += ls.spent()
	}
	for _, r := range c.work.returns {
		units += r.Units
	}
	for _, p := range c.work.posts {
		units += p.Units
	}
	for _, p := range c.work.flying {
		units += p.Units
	}
	if c.work.doubt != nil {
		units += c.work.doubt.taken
		for _, r := range c.work.doubt.x.Returns {
			units += r.Units
		}
	}
	return units
}
