package kvstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// nodes keeps this node's heartbeat in the store and hears those of the
// others. Heartbeats are heard as they are published, without a consumer, so
// that no change of leadership interrupts the hearing.
type nodes struct {
	cfg     Config
	version string
	clock   *storeClock
	members *members
	metrics *metrics
	log     *slog.Logger
	started time.Time

	nc  *nats.Conn // set by open
	js  jetstream.JetStream
	str jetstream.Stream // the nodes bucket
	sub *nats.Subscription

	phase atomic.Pointer[string]
	owner atomic.Bool   // takes exchanges for others
	grows atomic.Bool   // see heartbeat.Growing
	kick  chan struct{} // a heartbeat is wanted now

	instance string      // tells this process from another one of its name
	twin     atomic.Bool // such a one was heard

	result atomic.Pointer[beatResult] // of the last heartbeat; nil before the first
}

// beatResult is how heartbeats fare.
type beatResult struct {
	err    error
	failed int // in a row
}

// unreachableAfter is how many heartbeats fail in a row before the store
// counts as away: one may meet a change of leadership.
const unreachableAfter = 2

func newNodes(cfg Config, version string, clock *storeClock, m *metrics, log *slog.Logger) *nodes {
	n := &nodes{
		cfg:     cfg,
		version: version,
		clock:   clock,
		members: newMembers(cfg.NodeName, cfg.HeartbeatInterval, cfg.NodeTTL),
		metrics: m,
		log:     log,
		started: time.Now(),
		kick:    make(chan struct{}, 1),

		instance: rand.Text(),
	}
	n.setPhase("joining")
	n.metrics.nodes.Set(1)
	return n
}

// setPhase is told to the others with the next heartbeat, which is soon.
func (n *nodes) setPhase(p string) {
	n.phase.Store(&p)
	n.hurry()
}

// setOwner says whether the node takes exchanges for others.
func (n *nodes) setOwner(yes bool) {
	n.owner.Store(yes)
	n.hurry()
}

// hurry asks for a heartbeat without delay. It never blocks.
func (n *nodes) hurry() {
	select {
	case n.kick <- struct{}{}:
	default: // one is asked for already
	}
}

// open begins to hear the others.
func (n *nodes) open(ctx context.Context, nc *nats.Conn, js jetstream.JetStream) (err error) {
	n.nc, n.js = nc, js
	ctx, cancel := context.WithTimeout(ctx, n.beatTimeout())
	defer cancel()
	if n.str, err = js.Stream(ctx, streamPrefix+NodesBucket); err != nil {
		return fmt.Errorf("kvstore: nodes bucket: %w", err)
	}
	sub, err := nc.Subscribe(subjectsOf(NodesBucket), n.heard)
	if err != nil {
		return fmt.Errorf("kvstore: hear the nodes: %w", err)
	}
	n.sub = sub
	return nil
}

// heard takes a heartbeat or a good-bye off the wire.
func (n *nodes) heard(m *nats.Msg) {
	now := n.clock.local()
	name := strings.TrimPrefix(m.Subject, subjectPrefix(NodesBucket))
	b, gone, err := parseHeartbeat(m.Data, m.Header)
	switch {
	case err != nil:
		n.log.Warn("heartbeat cannot be read", "node", name, "error", err)
		return
	case gone:
		n.members.leave(name)
	default:
		n.members.hear(now, name, b)
		n.suspect(name, b)
	}
	n.metrics.nodes.Set(float64(n.members.count()))
}

// suspect tells, once, of another process that runs under this node's name.
func (n *nodes) suspect(name string, b heartbeat) {
	if name == n.cfg.NodeName && b.Instance != n.instance && !n.twin.Swap(true) {
		n.log.Error("another process runs under this node's name; names must be unique", "node", name)
	}
}

// run sends heartbeats until ctx ends. beaten is called after each.
func (n *nodes) run(ctx context.Context, beaten func(error)) {
	t := time.NewTimer(n.pause())
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.kick:
		case <-t.C:
		}
		t.Reset(n.pause())
		err := n.beat(ctx)
		if ctx.Err() != nil {
			return
		}
		beaten(err)
	}
}

// pause is the interval with a tenth of jitter either way.
func (n *nodes) pause() time.Duration {
	tenth := n.cfg.HeartbeatInterval / 10
	return n.cfg.HeartbeatInterval - tenth + mathrand.N(2*tenth)
}

// beat sends one heartbeat and learns from its stamp.
func (n *nodes) beat(ctx context.Context) error {
	s, err := n.measure(ctx)
	n.note(err)
	if err == nil {
		n.members.answered(s.heard)
		n.metrics.nodes.Set(float64(n.members.count()))
		n.learn(s)
	}
	return err
}

// beatTimeout bounds one heartbeat, its way back included.
func (n *nodes) beatTimeout() time.Duration {
	return min(max(n.cfg.HeartbeatInterval, minBeatTimeout), maxBeatTimeout)
}

const (
	minBeatTimeout = time.Second
	maxBeatTimeout = 2 * time.Second
)

// measure writes a heartbeat and reads its stamp.
func (n *nodes) measure(ctx context.Context) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, n.beatTimeout())
	defer cancel()
	data, err := json.Marshal(n.current())
	if err != nil {
		return sample{}, fmt.Errorf("heartbeat: %w", err)
	}
	s := sample{sent: n.clock.local()}
	seq, err := writeNodeRecord(ctx, n.js, n.cfg.NodeName, data, heartbeatTTL+allowance(n.members.wallsApart()))
	if err != nil {
		return sample{}, err
	}
	s.heard = n.clock.local()
	s.stamp, err = readStamp(ctx, n.str, seq)
	return s, err
}

// current is the heartbeat to send now.
func (n *nodes) current() heartbeat {
	b := heartbeat{
		Phase:   *n.phase.Load(),
		Version: n.version,
		Uptime:  time.Since(n.started),

		Instance: n.instance,
		Growing:  n.grows.Load(),
	}
	b.Owner = n.owner.Load() && b.Phase != PhaseDraining
	if n.clock.synced() {
		b.At, b.Error, b.Offset = n.clock.Now(), n.clock.Error(), n.clock.sinceWall()
	}
	return b
}

// note remembers how a heartbeat fared.
func (n *nodes) note(err error) {
	n.metrics.heartbeats[err == nil].Inc()
	r := &beatResult{err: err}
	if was := n.result.Load(); err != nil && was != nil {
		r.failed = was.failed
	}
	if err != nil {
		r.failed++
	}
	n.result.Store(r)
}

// health is nil while heartbeats succeed, one failure allowed.
func (n *nodes) health() error {
	r := n.result.Load()
	switch {
	case r == nil:
		return errNoHeartbeat
	case r.err != nil && (r.failed >= unreachableAfter || !n.clock.synced()):
		return r.err
	}
	return nil
}

// leave takes this node's heartbeat out of the store and stops hearing. Where
// the store does not take that (the others have left before, and with them the
// quorum) the heartbeat expires.
func (n *nodes) leave(ctx context.Context) {
	if n.sub != nil {
		_ = n.sub.Unsubscribe() // fails only on a connection that is closed
	}
	if n.js == nil || n.result.Load() == nil {
		return // no heartbeat was ever sent
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if _, err := writeNodeRecord(ctx, n.js, n.cfg.NodeName, nil, removalTTL); err != nil {
		n.log.Info("heartbeat is left to expire", "error", err)
	}
}

// leaveTimeout bounds the heartbeat's removal.
const leaveTimeout = 500 * time.Millisecond
