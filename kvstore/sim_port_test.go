package kvstore

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// simPort is one life's connection; a wire.
type simPort struct {
	net  *simNet
	node *simNode
	life *simLife
	dead atomic.Bool // crashed or closed: nothing leaves it any more
}

// gone reports whether the server has lost the connection.
func (p *simPort) gone() bool { return p.dead.Load() || p.node.cut.Load() }

// IsConnected implements wire.
func (p *simPort) IsConnected() bool { return !p.gone() }

// Publish implements wire.
func (p *simPort) Publish(subject string, data []byte) error {
	if p.gone() {
		return nats.ErrReconnectBufExceeded
	}
	p.net.flights.Go(func() { p.net.answered(p, subject, data) })
	return nil
}

// RequestWithContext implements wire.
func (p *simPort) RequestWithContext(ctx context.Context, subject string, data []byte) (*nats.Msg, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if p.gone() {
		return nil, nats.ErrReconnectBufExceeded
	}
	var r *simRequest
	if strings.HasPrefix(subject, jetstream.DefaultAPIPrefix) {
		r = p.net.request(p, subject+string(data))
		p.net.flights.Go(func() { p.net.read(r, data) })
	} else {
		r = p.net.request(p, subject)
		p.net.flights.Go(func() { p.net.ask(r, subject, data) })
	}
	a, err := r.wait(ctx)
	return a.msg, err
}

// Subscribe implements wire. The subscription is none of a real connection; it
// ends with the port.
func (p *simPort) Subscribe(subject string, take nats.MsgHandler) (*nats.Subscription, error) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.net.inboxes[subject] = &simInbox{port: p, take: take}
	return &nats.Subscription{}, nil
}

// simJetStream is as much of JetStream as counters need.
type simJetStream struct {
	jetstream.JetStream
	port *simPort
}

// Conn implements jetstream.JetStream; the port stands for it.
func (*simJetStream) Conn() *nats.Conn { return nil }

// Options implements jetstream.JetStream.
func (*simJetStream) Options() jetstream.JetStreamOptions { return jetstream.JetStreamOptions{} }

// PublishMsg implements jetstream.JetStream.
func (js *simJetStream) PublishMsg(ctx context.Context, msg *nats.Msg, _ ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := js.port
	if p.gone() {
		return nil, nats.ErrReconnectBufExceeded
	}
	r := p.net.request(p, msg.Subject)
	p.net.flights.Go(func() { p.net.write(r, msg) })
	a, err := r.wait(ctx)
	return a.ack, err
}
