package cluster

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// proxy carries TCP connections between a node and a server, as long as the
// network is whole. When it is cut, bytes are held up in both directions and
// nobody is told, as in a network that loses packets; when it is healed they
// arrive, late. With a delay every byte arrives that much later.
type proxy struct {
	listener net.Listener
	target   string
	ctx      context.Context // ends with the proxy
	work     sync.WaitGroup

	mu     sync.Mutex
	whole  chan struct{} // closed while the network is whole
	delay  time.Duration // one way
	closed bool
	conns  map[net.Conn]struct{}
}

// dialBound bounds the dialling of a target.
const dialBound = 5 * time.Second

// newProxy carries what is sent to its address to target; it ends with the test.
func newProxy(tb testing.TB, target string) *proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	whole := make(chan struct{})
	close(whole)
	p := &proxy{listener: l, target: target, ctx: ctx, whole: whole, conns: make(map[net.Conn]struct{})}
	p.work.Go(p.accept)
	tb.Cleanup(func() {
		cancel()
		l.Close()
		p.drop()
		p.work.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

// cut holds up all traffic.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.whole:
		p.whole = make(chan struct{})
	default: // cut already
	}
}

// heal lets traffic through again, what was held up first.
func (p *proxy) heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.whole:
	default:
		close(p.whole)
	}
}

// slow delays every byte from now on, each way by half of roundTrip.
func (p *proxy) slow(roundTrip time.Duration) {
	p.mu.Lock()
	p.delay = roundTrip / 2
	p.mu.Unlock()
}

func (p *proxy) state() (whole <-chan struct{}, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.whole, p.delay
}

// passes waits until the network is whole; false when the proxy ends first.
func (p *proxy) passes() bool {
	whole, _ := p.state()
	select {
	case <-whole:
		return true
	case <-p.ctx.Done():
		return false
	}
}

func (p *proxy) accept() {
	for {
		from, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.work.Go(func() { p.carry(from) })
	}
}

// carry joins a connection to the target until either side ends it.
func (p *proxy) carry(from net.Conn) {
	defer p.forget(from)
	if !p.keep(from) || !p.passes() {
		return
	}
	dialer := net.Dialer{Timeout: dialBound}
	to, err := dialer.DialContext(p.ctx, "tcp", p.target)
	if err != nil {
		return // as refused as it can be told
	}
	defer p.forget(to)
	if !p.keep(to) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(to, from) })
	p.copy(from, to)
	both.Wait()
}

// keep notes a connection, to be closed with the proxy; false when that is over.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
	return !p.closed
}

func (p *proxy) forget(c net.Conn) {
	p.mu.Lock()
	delete(p.conns, c)
	p.mu.Unlock()
	c.Close()
}

// drop closes all connections, now and for good.
func (p *proxy) drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c := range p.conns {
		c.Close()
	}
}
