package sim

import "github.com/headgate-io/headgate/ratelimit/counter"

// checkRefreshed: on a calm day a node that keeps being asked for a counter and
// keeps denying reads it at least once in two sync intervals.
func (w *world) checkRefreshed(b *book) {
	if !w.sc.calm || !w.keepsAll() {
		return
	}
	bound := 2*w.sc.config.SyncInterval + w.sc.config.Attempt
	type streak struct{ since, last counter.Instant }
	streaks := make(map[*life]streak)
	for _, a := range b.asks {
		s, ok := streaks[a.life]
		if !ok || !a.denied || a.at.Sub(s.last) > w.sc.config.SyncInterval/2 {
			s.since = a.at
		}
		s.last = a.at
		streaks[a.life] = s
		from := s.since
		if n := b.lastNews(a.life, a.at); n != nil {
			from = max(from, n.at)
		}
		if quiet := a.at.Sub(from); quiet > bound {
			w.fault("%s: %s only denied for %v until %v and did not read the counter, the bound is %v",
				b.key, a.life.node.name, quiet, w.since(a.at), bound)
			return
		}
	}
}
