package kvstore

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/headgate-io/headgate/ratelimit"
)

const (
	// peerSubject is where a node hears what another asks of it.
	peerSubject = "headgate.peer."
	// peerTimeout bounds one answer, for askers and answerers alike.
	peerTimeout = 2 * time.Second
	// peersInFlight bounds the requests that a node answers at a time; beyond
	// it they are not answered. What operators ask is rare.
	peersInFlight = 64
)

// askPeers asks every other node that is alive the same. It returns what they
// answered by name, and the names of those that did not within ctx or two
// seconds. Before the store is joined the error is [ratelimit.ErrUnavailable].
func (s *Store) askPeers(ctx context.Context, request []byte) (answers map[string][]byte, silent []string, err error) {
	l := s.link.Load()
	if l == nil {
		return nil, nil, errNotJoined
	}
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	var (
		mu     sync.Mutex
		asking sync.WaitGroup
	)
	answers = make(map[string][]byte)
	for _, name := range s.nodes.members.others() {
		asking.Go(func() {
			msg, err := l.nc.RequestWithContext(ctx, peerSubject+name, request)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				silent = append(silent, name) // whatever the reason
				return
			}
			answers[name] = msg.Data
		})
	}
	asking.Wait()
	slices.Sort(silent)
	return answers, silent, nil
}

// servePeers answers what other nodes ask with askPeers, a few requests at a time,
// each within two seconds. stop ends it and waits for the answers
// under way. The error is [ratelimit.ErrUnavailable] before the store is joined.
func (s *Store) servePeers(answer func(ctx context.Context, request []byte) []byte) (stop func(), err error) {
	l := s.link.Load()
	if l == nil {
		return nil, errNotJoined
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &peerServer{ctx: ctx, answer: answer, slots: make(chan struct{}, peersInFlight)}
	sub, err := l.nc.Subscribe(peerSubject+s.cfg.NodeName, p.take)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("%w: hear other nodes: %w", ratelimit.ErrUnavailable, err)
	}
	return func() {
		// Without a connection there is nothing to take back.
		_ = sub.Unsubscribe()
		cancel()
		p.close()
	}, nil
}

// peerServer answers requests of other nodes.
type peerServer struct {
	ctx    context.Context
	answer func(ctx context.Context, request []byte) []byte
	slots  chan struct{}

	mu      sync.Mutex
	closed  bool
	serving sync.WaitGroup
}

// take is called for one message after the other and must not wait.
func (p *peerServer) take(msg *nats.Msg) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	select {
	case p.slots <- struct{}{}:
	default:
		return // the asker is told by the silence
	}
	p.serving.Go(func() {
		defer func() { <-p.slots }()
		ctx, cancel := context.WithTimeout(p.ctx, peerTimeout)
		defer cancel()
		// An answer that cannot be sent is missed by who waits for it.
		_ = msg.Respond(p.answer(ctx, msg.Data))
	})
}

func (p *peerServer) close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.serving.Wait()
}

// others names the nodes that are alive but for this one, in order.
func (m *members) others() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make([]string, 0, len(m.nodes))
	for name, n := range m.nodes {
		if name != m.self && m.elapsed-n.seen <= m.ttl {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
