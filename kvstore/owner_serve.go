package kvstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	"github.com/headgate-io/headgate/kvstore/recordpb"
)

// Start begins to take exchanges of other nodes. The context bounds nothing
// beyond the call.
func (o *owners) Start(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.subs) > 0 || o.declines {
		return nil
	}
	var subs []*nats.Subscription
	for _, subject := range []string{ownerSubject, deputySubject} {
		sub, err := o.nc.Subscribe(subject+o.node, o.take)
		if err != nil {
			return errors.Join(fmt.Errorf("kvstore: take exchanges of other nodes: %w", err), o.unsubscribe(subs))
		}
		subs = append(subs, sub)
	}
	o.subs = subs
	return nil
}

// Drain gives this node's counters up: exchanges of others are declined from
// now on, so that they go elsewhere at once, and those taken before are settled
// first. The error is the context's, when it ends before that is done.
func (o *owners) Drain(ctx context.Context) error {
	o.mu.Lock()
	o.declines = true
	o.mu.Unlock()

	// Only this waits for serving; the goroutine ends when the last exchange
	// does, and each is bounded by the patience of who sent it and by what its
	// counter's worker is busy with.
	done := make(chan struct{})
	go func() {
		o.serving.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("exchanges of other nodes are still being settled: %w", ctx.Err())
	}
}

// Stop drains, then hears no more and probes nobody. Own exchanges are still
// brought to their owners. It may be called again.
func (o *owners) Stop(ctx context.Context) error {
	err := o.Drain(ctx)
	o.mu.Lock()
	subs := o.subs
	o.subs = nil
	o.endProbes()
	o.mu.Unlock()
	o.probes.Wait() // each ends with probing
	return errors.Join(err, o.unsubscribe(subs))
}

// unsubscribe takes subscriptions back; without a connection there is nothing to
// take back.
func (o *owners) unsubscribe(subs []*nats.Subscription) error {
	var errs []error
	for _, sub := range subs {
		if !sub.IsValid() || !o.nc.IsConnected() {
			continue
		}
		if err := sub.Unsubscribe(); err != nil {
			errs = append(errs, fmt.Errorf("unsubscribe: %w", err))
		}
	}
	return errors.Join(errs...)
}

// take is called for one message after the other and must not wait.
func (o *owners) take(msg *nats.Msg) {
	if len(msg.Data) == 0 {
		o.respond(msg, &recordpb.Answer{Outcome: o.standing()})
		return
	}
	if !o.admit() {
		o.respond(msg, &recordpb.Answer{Outcome: recordpb.Outcome_OUTCOME_NOT_MINE})
		return
	}
	o.serve(msg)
}

// admit takes a slot for an exchange, if there is one.
func (o *owners) admit() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.declines {
		return false
	}
	select {
	case o.slots <- struct{}{}:
		o.serving.Add(1)
		return true
	default:
		return false
	}
}

// standing is what a probe is told.
func (o *owners) standing() recordpb.Outcome {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.declines || len(o.slots) == cap(o.slots) {
		return recordpb.Outcome_OUTCOME_NOT_MINE
	}
	return recordpb.Outcome_OUTCOME_READY
}

// leave gives a slot back.
func (o *owners) leave() {
	<-o.slots
	o.serving.Done()
}

// serve has one exchange of another node settled, and answers it when it is. It
// does not wait for that.
func (o *owners) serve(msg *nats.Msg) {
	a, err := decodeAsk(msg.Data)
	if err != nil {
		o.respond(msg, &recordpb.Answer{Outcome: recordpb.Outcome_OUTCOME_UNAVAILABLE, Reason: err.Error()})
		o.leave()
		return
	}
	a.repeated = strings.HasPrefix(msg.Subject, deputySubject)
	clock := o.settler.clock
	if a.stale(clock.Now(), clock.Error()) {
		o.leave() // nobody waits for an answer
		return
	}
	o.metrics.served.Inc()
	o.settler.serve(a.x, a.way(), a.patience, func(got outcome) {
		defer o.leave()
		if data, err := encodeAnswer(got); err == nil {
			o.publish(msg, data)
		}
	})
}

// respond answers without having settled anything.
func (o *owners) respond(msg *nats.Msg, pb *recordpb.Answer) {
	if data, err := proto.Marshal(pb); err == nil {
		o.publish(msg, data)
	}
}

// publish answers; an answer that cannot be sent is missed by who waits for it,
// who then goes to the store.
func (o *owners) publish(msg *nats.Msg, data []byte) { _ = o.nc.Publish(msg.Reply, data) }
