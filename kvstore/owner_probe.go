package kvstore

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/headgate-io/headgate/kvstore/recordpb"
)

// passOver lets others own a node's counters until it answers a probe. No
// exchange is spent on finding out when it does.
func (o *owners) passOver(name string) {
	o.places.silent(name)
	o.suspect(name)
}

// suspect probes a node that owes an answer. One that answers the probe only
// stood still for a moment, perhaps together with the whole machine, and keeps
// its counters: were it passed over, nodes that noticed and nodes that did not
// would have two owners for one counter. The others are passed over.
func (o *owners) suspect(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, already := o.suspects[name]; already || o.probing.Err() != nil {
		return
	}
	o.suspects[name] = struct{}{}
	o.probes.Go(func() {
		o.probe(name)
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.suspects, name)
		o.places.spoke(name)
	})
}

// probe returns when a node answers that it takes exchanges, when it is no
// longer among those that live, or when nobody wants to know. A first answer
// has to come as soon as that to an exchange.
func (o *owners) probe(name string) {
	if o.ready(name, o.cfg.Answer) {
		return
	}
	o.places.silent(name)
	for o.places.lives(name) {
		again := time.NewTimer(o.cfg.Probe)
		if o.ready(name, o.cfg.Probe) {
			again.Stop()
			return
		}
		select {
		case <-again.C:
		case <-o.probing.Done():
			again.Stop()
			return
		}
	}
}

// ready asks a node whether it takes exchanges, and waits that long.
func (o *owners) ready(name string, wait time.Duration) bool {
	ctx, cancel := context.WithTimeout(o.probing, wait)
	defer cancel()
	msg, err := o.nc.RequestWithContext(ctx, ownerSubject+name, nil)
	if err != nil {
		return false
	}
	var pb recordpb.Answer
	return proto.Unmarshal(msg.Data, &pb) == nil && pb.GetOutcome() == recordpb.Outcome_OUTCOME_READY
}
