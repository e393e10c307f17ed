package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// What nodes ask of each other for an operator.
const (
	opHold    = "hold"    // end your leases on a counter and grant nothing
	opRelease = "release" // go on
	opRefresh = "refresh" // read a counter again
	opLeases  = "leases"  // what do you hold
)

// peerRequest is what one node asks of all others, as JSON.
type peerRequest struct {
	Op   string        `json:"op"`
	Key  ratelimit.Key `json:"key,omitempty"`
	Held string        `json:"held,omitempty"` // names the hold
}

// peerAnswer is what a node answers. What it does not understand is a Fault, so
// that releases which differ do not misunderstand one another.
type peerAnswer struct {
	Units int64         `json:"units,omitempty"`
	Until time.Duration `json:"untilNs,omitempty"` // from now
	Fault string        `json:"fault,omitempty"`
}

// peer answers what other nodes ask, and keeps the holds that they asked for.
type peer struct {
	operator *operator

	mu     sync.Mutex
	closed bool
	holds  map[string]*hold
}

// hold is a counter held for another node.
type hold struct {
	release func()
	expiry  *time.Timer // whoever asked may be gone
}

func newPeer(o *operator) *peer { return &peer{operator: o, holds: make(map[string]*hold)} }

func (p *peer) answer(ctx context.Context, request []byte) []byte {
	var r peerRequest
	a := peerAnswer{Fault: "the request is not understood"}
	if json.Unmarshal(request, &r) == nil {
		a = p.do(ctx, r)
	}
	// Numbers and texts always encode.
	data, _ := json.Marshal(a)
	return data
}

func (p *peer) do(ctx context.Context, r peerRequest) peerAnswer {
	switch r.Op {
	case opHold:
		return p.hold(ctx, r)
	case opRelease:
		p.release(r.Held)
		return peerAnswer{}
	case opRefresh:
		p.operator.refresh(ctx, r.Key)
		return peerAnswer{}
	case opLeases:
		return p.operator.leased(r.Key)
	default:
		return peerAnswer{Fault: fmt.Sprintf("%q is not understood", r.Op)}
	}
}

func (p *peer) hold(ctx context.Context, r peerRequest) peerAnswer {
	ctx, cancel := context.WithTimeout(ctx, holdPatience)
	defer cancel()
	release, err := p.operator.limiter.Hold(ctx, r.Key)
	if err != nil {
		return peerAnswer{Fault: "its leases cannot be settled: " + err.Error()}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.holds[r.Held] != nil {
		release()
		return peerAnswer{Fault: "it is leaving, or was asked twice"}
	}
	p.holds[r.Held] = &hold{release: release, expiry: time.AfterFunc(holdLife, func() { p.release(r.Held) })}
	return peerAnswer{}
}

// release lets go of a hold; one that is unknown was let go before.
func (p *peer) release(held string) {
	p.mu.Lock()
	h := p.holds[held]
	delete(p.holds, held)
	p.mu.Unlock()
	if h != nil {
		h.expiry.Stop()
		h.release()
	}
}

// close lets go of all holds and takes no more.
func (p *peer) close() {
	p.mu.Lock()
	p.closed = true
	holds := p.holds
	p.holds = make(map[string]*hold)
	p.mu.Unlock()
	for _, h := range holds {
		h.expiry.Stop()
		h.release()
	}
}
