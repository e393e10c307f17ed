package kvstore

import (
	"context"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// join writes the first heartbeat, reads it back, learns who else is there and
// sets the clock.
func (n *nodes) join(ctx context.Context) error {
	s, err := n.measureWell(ctx)
	if err != nil {
		n.note(err)
		return err
	}
	found, err := n.list(ctx)
	if err != nil {
		n.note(err)
		return err
	}
	n.members.answered(s.heard)
	n.find(found, s.stamp)
	if n.doubtful(found, s.stamp) {
		n.awaitPeer(ctx)
	}
	n.learn(s)
	n.note(nil)
	return nil
}

// goodSample is from sending a heartbeat to its answer; what took longer is
// measured again as long as that helps. A store that is busy with a restart
// answers slowly, and how slowly is how uncertain the clock is.
const goodSample = 10 * time.Millisecond

// measureWell measures until a heartbeat was answered quickly, or no longer half
// as quickly as the one before, and returns the quickest.
func (n *nodes) measureWell(ctx context.Context) (sample, error) {
	best, err := n.measure(ctx)
	for better := true; better && err == nil && best.trip() > goodSample; {
		s, err := n.measure(ctx)
		if err != nil {
			break // the first one did come
		}
		better = s.trip() < best.trip()/2
		if s.trip() < best.trip() {
			best = s
		}
	}
	return best, err
}

// find takes what is in the bucket, as old as it is at now.
func (n *nodes) find(found []heard, now counter.Instant) {
	for _, h := range found {
		if h.name != n.cfg.NodeName {
			n.members.find(h.name, h.beat, now.Sub(h.stamp))
		}
	}
	n.metrics.nodes.Set(float64(n.members.count()))
}

// gathered reports whether as many nodes are there as wanted and none of them
// is still copying what it kept while it was alone. Where one is missing it
// looks into the bucket: between nodes that start at the same time a first
// heartbeat may not be heard, and the second comes once they are joined.
func (n *nodes) gathered(ctx context.Context, wanted int) bool {
	if n.members.gathered(wanted) {
		return true
	}
	found, err := n.list(ctx)
	if err != nil {
		return false // asked again soon
	}
	var newest counter.Instant
	for _, h := range found {
		newest = max(newest, h.stamp)
	}
	n.find(found, newest)
	return n.members.gathered(wanted)
}

// list reads the heartbeats in the bucket.
func (n *nodes) list(ctx context.Context) ([]heard, error) {
	ctx, cancel := context.WithTimeout(ctx, n.beatTimeout())
	defer cancel()
	return readNodes(ctx, n.js)
}

// doubtful reports whether the stamp that we got is not the clock that the
// running nodes go by: they said another time when they were stamped, or their
// stamps lie in the future of ours, or so far in its past that they would have
// expired.
func (n *nodes) doubtful(found []heard, stamp counter.Instant) bool {
	for _, h := range found {
		if h.name == n.cfg.NodeName || h.beat.At == 0 {
			continue
		}
		shift, age := h.beat.At.Sub(h.stamp), stamp.Sub(h.stamp)
		if shift < -maxFollow || shift > maxFollow || age < -maxFollow || age > heartbeatTTL+n.cfg.NodeTTL {
			return true
		}
	}
	return false
}

// awaitPeer waits for a synced node's heartbeat, for as long as one that was found
// may be alive: its heartbeats come late while the bucket cannot be written, and
// who goes on without takes a clock that counts nothing of what was spent.
func (n *nodes) awaitPeer(ctx context.Context) {
	patience := time.NewTimer(n.cfg.NodeTTL)
	defer patience.Stop()
	look := time.NewTicker(n.cfg.HeartbeatInterval / 20)
	defer look.Stop()
	for len(n.members.offsets(0)) == 0 {
		select {
		case <-ctx.Done():
			return
		case <-patience.C:
			return
		case <-look.C:
		}
	}
}

// learn sets the clock by a sample and tells of what was unusual.
func (n *nodes) learn(s sample) {
	before := n.clock.Now()
	what := n.clock.observe(s, n.members.offsets(0))
	if up := time.Since(n.started); up < n.cfg.NodeTTL && n.clock.concede(n.members.offsets(up)) {
		what = clockAdopted
	}
	n.metrics.clockOffset.Set(n.clock.sinceWall().Seconds())
	n.metrics.clockError.Set(n.clock.Error().Seconds())
	switch what {
	case clockHeld:
		n.metrics.clockSteps.Inc()
		n.log.Warn("the store's wall clock stepped; the nodes' clock goes on", "shift", n.clock.shifted())
	case clockAdopted:
		n.log.Warn("took the other nodes' clock", "moved", n.clock.Now().Sub(before), "shift", n.clock.shifted())
	case clockFollowed:
		n.log.Debug("store clock corrected", "moved", n.clock.Now().Sub(before))
	case clockSet, clockKept:
	}
}
