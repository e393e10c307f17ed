package ratelimit

import (
	"slices"

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

// undo gives up units that were taken: a post of them that did not travel yet
// goes, and what was charged is handed back. Where the post travels, that waits
// until its exchange has an outcome: posted again together with the return, the
// units would be handed back before they are charged, and stay charged.
func (w *work) undo(p *plan, units int64, at counter.Instant) {
	switch {
	case w.unpost(p, units, at):
	case postOf(p, w.flying, units, at) >= 0:
		w.undone = append(w.undone, Return{Units: units, Until: at})
	default:
		w.giveBack(units, at)
	}
}

// settleUndone is undo for what waited for the outcome of an exchange with posts,
// which have arrived or are to be posted again.
func (w *work) settleUndone(p *plan) {
	undone := w.undone
	w.undone = nil
	for _, r := range undone {
		w.undo(p, r.Units, r.Until)
	}
}

// unpost takes units out of the post that stands for their admission.
func (w *work) unpost(p *plan, units int64, at counter.Instant) bool {
	i := postOf(p, w.posts, units, at)
	if i < 0 {
		return false
	}
	if w.posts[i].Units -= units; w.posts[i].Units == 0 {
		w.posts = slices.Delete(w.posts, i, i+1)
	}
	return true
}

// postOf is the index of the post that may stand for an admission of units at an
// instant, or for another one that counts as it does; -1 when there is none.
func postOf(p *plan, posts []Post, units int64, at counter.Instant) int {
	return slices.IndexFunc(posts, func(o Post) bool {
		return o.Units >= units && (o.At == at || o.At > at && mergeable(p, at, o.At))
	})
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
