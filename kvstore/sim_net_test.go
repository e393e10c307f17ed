package kvstore

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"google.golang.org/protobuf/proto"

	"github.com/headgate-io/headgate/kvstore/recordpb"
)

// simNet carries the messages of a simulation. Each draws its fault from who
// sends it, where to and as the how manieth, and not from when.
type simNet struct {
	seed    uint64
	plan    simPlan
	store   *simStore
	healed  atomic.Bool    // nothing goes wrong from now on
	flights sync.WaitGroup // messages on their way

	mu      sync.Mutex
	inboxes map[string]*simInbox
	open    map[string]*simRequest // by the subject of the answer
	sent    map[simRoute]int
	opened  int
	late    int // messages that took effect after their sender had given them up
}

// simRoute is a way that messages take.
type simRoute struct{ from, to string }

// simInbox is where a node hears, one message after the other.
type simInbox struct {
	port *simPort
	mu   sync.Mutex
	take nats.MsgHandler
}

// simRequest is a message that somebody waits for the answer of.
type simRequest struct {
	port   *simPort
	reply  string
	fault  simFault
	answer chan simAnswer // holds one
	left   atomic.Bool    // nobody waits any more
	vain   atomic.Bool    // it was settled, and got nothing
}

// simAnswer is what a request came to.
type simAnswer struct {
	msg *nats.Msg
	ack *jetstream.PubAck
	err error
}

func newSimNet(seed uint64, plan simPlan, store *simStore) *simNet {
	return &simNet{
		seed: seed, plan: plan, store: store,
		inboxes: make(map[string]*simInbox),
		open:    make(map[string]*simRequest),
		sent:    make(map[simRoute]int),
	}
}

// request opens a request of a port to a place.
func (n *simNet) request(p *simPort, to string) *simRequest {
	n.mu.Lock()
	defer n.mu.Unlock()
	route := simRoute{p.node.name, to}
	n.sent[route]++
	n.opened++
	r := &simRequest{port: p, reply: fmt.Sprintf("_INBOX.%d", n.opened), answer: make(chan simAnswer, 1)}
	if !n.healed.Load() {
		h := fnv.New64a()
		fmt.Fprint(h, route.from, " ", route.to, " ", n.sent[route])
		r.fault = n.plan.draw(rand.New(rand.NewPCG(n.seed, h.Sum64())))
	}
	n.open[r.reply] = r
	return r
}

// wait returns the answer, or the context's error.
func (r *simRequest) wait(ctx context.Context) (simAnswer, error) {
	select {
	case a := <-r.answer:
		r.left.Store(true)
		return a, a.err
	case <-ctx.Done():
		r.left.Store(true)
		return simAnswer{}, ctx.Err()
	}
}

// leaves lets the request travel to the door of who it is for; false: it never
// gets there.
func (r *simRequest) leaves() bool {
	time.Sleep(r.fault.before)
	r.port.node.hold()
	return !r.fault.lost && !(r.port.dead.Load() && r.fault.dies)
}

// comesBack lets an answer travel back. Only the first one counts.
func (r *simRequest) comesBack(a simAnswer) {
	if r.fault.mute {
		return
	}
	time.Sleep(r.fault.after)
	r.port.node.hold()
	if r.port.node.cut.Load() {
		return
	}
	select {
	case r.answer <- a:
	default:
	}
}

// ask carries a request to another node. A second copy may arrive at a node that
// takes it, as long as the answer to the first one has not. NATS delivers at most
// once, and that is relied upon so far: no copy turns up when who asked has long
// gone on, none is declined while the first is being settled, and none comes of
// what no record tells of.
func (n *simNet) ask(r *simRequest, subject string, data []byte) {
	if !r.leaves() {
		return
	}
	n.deliver(r, subject, data)
	if r.fault.again > 0 {
		time.Sleep(r.fault.again)
		if !r.left.Load() && !r.untold(subject, data) && n.takes(subject) {
			n.deliver(r, subject, data)
		}
	}
}

// untold reports whether no record tells of an exchange: its owner had nothing for
// it, and it brought nothing.
func (r *simRequest) untold(subject string, data []byte) bool {
	a, err := decodeAsk(data)
	return err == nil && r.vain.Load() && strings.HasPrefix(subject, ownerSubject) && !brings(a.x)
}

// takes reports whether a node takes exchanges now.
func (n *simNet) takes(subject string) bool {
	n.mu.Lock()
	in := n.inboxes[subject]
	n.mu.Unlock()
	return in != nil && !in.port.gone() && !in.port.node.frozen() && in.port.life.owners.standing() == recordpb.Outcome_OUTCOME_READY
}

func (n *simNet) deliver(r *simRequest, subject string, data []byte) {
	n.mu.Lock()
	in := n.inboxes[subject]
	n.mu.Unlock()
	if in == nil || in.port.gone() {
		r.comesBack(simAnswer{err: nats.ErrNoResponders})
		return
	}
	in.port.node.hold()
	if in.port.gone() {
		return // with what it had received
	}
	n.tookEffect(r, len(data) > 0)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.take(&nats.Msg{Subject: subject, Reply: r.reply, Data: data})
}

// tookEffect notes whether anybody still waits for what happens now.
func (n *simNet) tookEffect(r *simRequest, matters bool) {
	if matters && (r.left.Load() || r.port.dead.Load()) {
		n.mu.Lock()
		n.late++
		n.mu.Unlock()
	}
}

// answered carries a node's answer back to who asked.
func (n *simNet) answered(p *simPort, reply string, data []byte) {
	n.mu.Lock()
	r := n.open[reply]
	n.mu.Unlock()
	if r == nil {
		return
	}
	p.node.hold()
	if !p.gone() {
		var pb recordpb.Answer
		settled := proto.Unmarshal(data, &pb) == nil && pb.GetOutcome() == recordpb.Outcome_OUTCOME_SETTLED
		r.vain.Store(settled && pb.GetUnits() == 0)
		r.comesBack(simAnswer{msg: &nats.Msg{Data: data}})
	}
}

// read carries a read to the store.
func (n *simNet) read(r *simRequest, data []byte) {
	switch {
	case !r.leaves():
	case r.fault.refused:
		r.comesBack(simAnswer{err: nats.ErrNoResponders})
	default:
		r.comesBack(simAnswer{msg: &nats.Msg{Data: n.store.get(data)}})
	}
}

// write carries a write to the store, and a second copy of it.
func (n *simNet) write(r *simRequest, msg *nats.Msg) {
	switch {
	case !r.leaves():
		return
	case r.fault.refused:
		r.comesBack(simAnswer{err: jetstream.ErrNoStreamResponse})
		return
	case r.fault.conflict:
		r.comesBack(simAnswer{err: &jetstream.APIError{ErrorCode: codeWrongSequenceConstant}})
		return
	case r.fault.doubtful:
		if r.fault.mute {
			_, _ = n.store.put(msg)
			n.tookEffect(r, true)
		}
		r.fault.mute = false
		r.comesBack(simAnswer{err: &jetstream.APIError{ErrorCode: jetstream.JSErrCodeStreamNotFound}})
		return
	}
	ack, err := n.store.put(msg)
	n.tookEffect(r, err == nil)
	n.flights.Go(func() { r.comesBack(simAnswer{ack: ack, err: err}) })
	if r.fault.again > 0 {
		time.Sleep(r.fault.again)
		_, _ = n.store.put(msg)
	}
}
