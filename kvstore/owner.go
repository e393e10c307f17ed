package kvstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/headgate-io/headgate/kvstore/recordpb"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// ownerSubject goes before a node's name to make the subject on which it takes
// exchanges.
const ownerSubject = "headgate.exchange."

// ownerConfig bounds what nodes ask of one another; zero fields take the
// defaults of newOwners.
type ownerConfig struct {
	// Answer is the longest wait for an owner, and for a deputy; less where the
	// caller has less time, so that the way straight to the store still fits.
	// Default 40 ms.
	Answer time.Duration
	// Probe is how often, and how long at most, a node that did not answer is
	// asked whether it does again. Default 1 s.
	Probe time.Duration
	// InFlight bounds the exchanges of other nodes that are settled at the same
	// time; beyond it they are declined. Default 4096.
	InFlight int
}

// answerShare is the part of a caller's remaining time that its owner gets, and
// the part of what then remains that the deputy gets.
const answerShare = 0.4

// wire is what carries messages between nodes, and to the store and back; in
// production a [*nats.Conn].
type wire interface {
	IsConnected() bool
	Publish(subject string, data []byte) error
	RequestWithContext(ctx context.Context, subject string, data []byte) (*nats.Msg, error)
	Subscribe(subject string, take nats.MsgHandler) (*nats.Subscription, error)
}

// liveNodes is the list of nodes that take exchanges for others. The list it
// returns is never changed, only replaced.
type liveNodes interface{ Live() []string }

// owners brings exchanges to the owners of their counters, and settles what
// other nodes bring to this one. Who owns a counter is a hint: whoever settles,
// the compare-and-swap of the settler decides. All methods may be called
// concurrently.
type owners struct {
	nc      wire
	settler *settler
	places  *places
	node    string
	cfg     ownerConfig
	metrics *metrics

	slots chan struct{} // one for each exchange being settled for others

	mu       sync.Mutex
	subs     []*nats.Subscription
	declines bool // takes no exchanges of others, or no more
	serving  sync.WaitGroup
	suspects map[string]struct{} // nodes being probed
	probes   sync.WaitGroup      // one for each

	// probing ends with Stop.
	probing   context.Context
	endProbes context.CancelFunc
}

// newOwners returns the way to the owners from a node of that name. It takes
// exchanges of others only after Start.
func newOwners(
	nc wire, s *settler, nodes liveNodes, node string, cfg ownerConfig, m *metrics,
) *owners {
	cfg.Answer = orDefault(cfg.Answer, 40*time.Millisecond)
	cfg.Probe = orDefault(cfg.Probe, time.Second)
	cfg.InFlight = orDefault(cfg.InFlight, 4096)
	o := &owners{
		nc:      nc,
		settler: s,
		places:  &places{nodes: nodes},
		node:    node,
		cfg:     cfg,
		metrics: m,
		slots:   make(chan struct{}, cfg.InFlight),

		suspects: make(map[string]struct{}),
	}
	o.probing, o.endProbes = context.WithCancel(context.Background())
	return o
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// Exchange implements [ratelimit.Store]. It asks the counter's owner, and the
// deputy where the owner does not say what became of it; where that is this node,
// or nobody, or does not answer in time, it settles with the store itself.
func (o *owners) Exchange(ctx context.Context, x ratelimit.Exchange) (ratelimit.Grant, error) {
	started := time.Now()
	owner := o.places.owner(x.Key)
	if owner == "" || owner == o.node || nameOf(x) == (name{}) || x.Issued != 0 {
		return o.settler.exchange(ctx, x, straight(x))
	}
	clock := o.settler.clock
	a := ask{x: x, issued: clock.Now().Add(-clock.Error()), patience: o.patience(ctx)}
	r := o.ask(ctx, owner, a)
	if r.doubtful {
		a.repeated = true
		r = o.askDeputy(ctx, owner, a, r)
	}
	o.metrics.asks[r.told].Inc()
	switch {
	case r.final:
		o.metrics.exchanged(r.result(), time.Since(started))
		return r.grant, r.err
	case r.doubtful:
		return o.repeat(ctx, a)
	default:
		return o.settler.exchange(ctx, x, straight(x))
	}
}

// repeat settles an exchange that its owner may have settled, or may still, and
// its deputy too. The record tells. Where it cannot be asked the exchange stays in
// doubt, also if nothing of the repeat was applied.
func (o *owners) repeat(ctx context.Context, a ask) (ratelimit.Grant, error) {
	g, err := o.settler.exchange(ctx, a.x, a.way())
	if err == nil || errors.Is(err, ratelimit.ErrUnknown) {
		return g, err
	}
	if ended := ctx.Err(); ended != nil {
		return g, fmt.Errorf("%w: the counter's owner did not answer: %w", ratelimit.ErrUnknown, ended)
	}
	return g, inDoubt(fmt.Errorf("the counter's owner did not answer; then: %w", err))
}

// patience is how long another node may deal with an exchange. It is longer than
// the wait for its answer: an owner that is late settles all that wait for the
// counter at once, and then those who went to the store find that there.
func (o *owners) patience(ctx context.Context) time.Duration {
	most := time.Duration(float64(o.cfg.Answer) / answerShare)
	deadline, ok := ctx.Deadline()
	if !ok {
		return most
	}
	return max(time.Millisecond, min(most, time.Until(deadline)))
}

// reply is what came of asking another node.
type reply struct {
	outcome
	final    bool // nobody else need be asked
	doubtful bool // the node may have settled it, or may still
	told     askResult
}

// ask sends an exchange to another node and waits for the answer.
func (o *owners) ask(ctx context.Context, node string, a ask) reply {
	data, err := encodeAsk(a)
	if err != nil || !o.nc.IsConnected() {
		return reply{told: askDeclined}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Duration(answerShare*float64(a.patience)))
	defer cancel()
	msg, err := o.nc.RequestWithContext(ctx, a.subject()+node, data)
	switch {
	case errors.Is(err, nats.ErrNoResponders) && a.repeated:
		o.suspect(node) // it may be of a release that is nobody's deputy
		return reply{told: askDeclined}
	case errors.Is(err, nats.ErrNoResponders):
		o.passOver(node)
		return reply{told: askDeclined}
	case errors.Is(err, context.DeadlineExceeded):
		o.suspect(node)
		return reply{doubtful: true, told: askSilent}
	case err != nil:
		return reply{doubtful: true, told: askSilent}
	}
	r := o.heed(node, a.x, msg.Data)
	r.told = askDeclined
	if r.final {
		r.told = askAnswered
	}
	return r
}

// heed reads a node's answer.
func (o *owners) heed(node string, x ratelimit.Exchange, data []byte) reply {
	var pb recordpb.Answer
	if err := proto.Unmarshal(data, &pb); err != nil {
		return reply{doubtful: true}
	}
	switch pb.GetOutcome() {
	case recordpb.Outcome_OUTCOME_SETTLED:
		g, err := grantFrom(&pb)
		if err != nil {
			return reply{doubtful: true}
		}
		return reply{final: true, outcome: outcome{grant: g, applied: g.Units > 0 || brings(x)}}
	case recordpb.Outcome_OUTCOME_NEWER_FORMAT:
		err := fmt.Errorf("%w: the counter's owner says: %s", ratelimit.ErrNewerFormat, pb.GetReason())
		return reply{final: true, outcome: outcome{err: err}}
	case recordpb.Outcome_OUTCOME_NOT_MINE:
		o.passOver(node)
		return reply{}
	case recordpb.Outcome_OUTCOME_UNAVAILABLE:
		return reply{}
	default:
		return reply{doubtful: true}
	}
}

// brings reports whether an exchange changes its counter whatever it is
// granted.
func brings(x ratelimit.Exchange) bool {
	return x.Reset || x.Add > 0 || len(x.Returns) > 0 || len(x.Posts) > 0
}

// stale reports whether the node that sent an ask has long given it up: this
// one stood still meanwhile.
func (a ask) stale(now counter.Instant, doubt time.Duration) bool {
	return now.Sub(a.issued) > a.patience+2*doubt+time.Second
}
