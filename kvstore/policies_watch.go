package kvstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
)

// Pauses between two watches, and how long a list may take to arrive.
const (
	policiesPause    = 50 * time.Millisecond
	policiesPauseMax = time.Second
	policiesPatience = 10 * time.Second
)

// errBehind ends a watch that missed something; the next one lists anew.
var errBehind = errors.New("the watch is behind the bucket")

// policyView is what a node knows of the bucket.
type policyView struct {
	good     map[string]*ratelimit.Policy // the last good one by key
	bad      map[string]uint64            // revisions that do not parse, by key, told already
	sequence uint64                       // of the last change seen
	fault    string                       // of the bucket itself, told already
}

// run watches until ctx ends. Whatever ends a watch, the next one lists the
// bucket anew, so no change is lost.
func (p *Policies) run(ctx context.Context) {
	select {
	case <-p.store.Joined():
	case <-ctx.Done():
		return
	}
	pause := policiesPause
	for {
		listed, err := p.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		p.tellBucketFault(err)
		if listed {
			pause = policiesPause
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		pause = min(2*pause, policiesPauseMax)
	}
}

// tellBucketFault tells what is wrong with the bucket itself, once. That the
// store is away is no fault of its policies.
func (p *Policies) tellBucketFault(err error) {
	if errors.Is(err, jetstream.ErrBucketNotFound) && p.view.fault != err.Error() {
		p.view.fault = err.Error()
		p.feed.Fault(err)
	}
}

// watch lists the bucket and follows it until something is wrong with that.
// listed says that it came as far as the whole list.
func (p *Policies) watch(ctx context.Context) (listed bool, err error) {
	begin, cancel := context.WithTimeout(ctx, policiesTimeout)
	defer cancel()
	kv, err := p.bucket(begin)
	if err != nil {
		return false, err
	}
	// Before the list: what comes between the two is seen by the list.
	last, err := p.lastSequence(begin)
	if err != nil {
		return false, err
	}
	w, err := kv.WatchAll(begin)
	if err != nil {
		return false, fmt.Errorf("watch policies: %w", err)
	}
	defer endWatch(w)
	if err := p.list(ctx, w, last); err != nil {
		return false, err
	}
	return true, p.follow(ctx, w)
}

// list takes the bucket's present contents and puts them in force at once.
func (p *Policies) list(ctx context.Context, w jetstream.KeyWatcher, last uint64) error {
	patience := time.NewTimer(policiesPatience)
	defer patience.Stop()
	next := policyView{good: map[string]*ratelimit.Policy{}, bad: map[string]uint64{}, sequence: last}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-patience.C:
			return fmt.Errorf("list policies: nothing for %s", policiesPatience)
		case entry, open := <-w.Updates():
			if !open {
				return errBehind
			}
			if entry != nil {
				patience.Reset(policiesPatience)
				p.take(&next, entry)
				continue
			}
			recovered := len(p.view.bad)+len(p.view.fault) > 0 && len(next.bad) == 0
			changed := p.view.good == nil || !maps.EqualFunc(p.view.good, next.good, sameRevision)
			p.view = next
			p.tell(changed, recovered)
			return nil
		}
	}
}

func sameRevision(a, b *ratelimit.Policy) bool { return a.Revision == b.Revision }

// follow applies changes as they come, and compares itself with the bucket now
// and then: a change that the watch does not bring for a whole interval was
// missed.
func (p *Policies) follow(ctx context.Context, w jetstream.KeyWatcher) error {
	check := time.NewTicker(p.check - rand.N(p.check/5)) // nodes need not ask together
	defer check.Stop()
	var missing uint64 // a sequence that had not come at the last check; 0: none
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case entry, open := <-w.Updates():
			if !open {
				return errBehind
			}
			p.change(entry, w)
		case <-check.C:
			ask, cancel := context.WithTimeout(ctx, policiesTimeout)
			last, err := p.lastSequence(ask)
			cancel()
			switch {
			case errors.Is(err, jetstream.ErrStreamNotFound):
				return err
			case err != nil: // the store is away; asked again
			case last < p.view.sequence, missing > p.view.sequence:
				return errBehind
			case last > p.view.sequence:
				missing = last
			}
		}
	}
}

// lastSequence is the number of the bucket's last change.
func (p *Policies) lastSequence(ctx context.Context) (uint64, error) {
	info, err := bucketInfo(ctx, p.store.JetStream(), PoliciesBucket)
	if err != nil {
		return 0, fmt.Errorf("bucket %s: %w", PoliciesBucket, err)
	}
	return info.State.LastSeq, nil
}

// change applies an entry and whatever else has come by now, as one change.
func (p *Policies) change(entry jetstream.KeyValueEntry, w jetstream.KeyWatcher) {
	before := len(p.view.bad)
	changed := p.take(&p.view, entry)
	for {
		select {
		case more := <-w.Updates():
			if more != nil { // nil: closed, which the caller meets next
				changed = p.take(&p.view, more) || changed
				continue
			}
		default:
		}
		p.tell(changed, before > 0 && len(p.view.bad) == 0)
		return
	}
}

// take enters one value into v, and reports whether a good policy changed. A
// value that does not parse leaves the good one that this node knows.
func (p *Policies) take(v *policyView, entry jetstream.KeyValueEntry) (changed bool) {
	if entry == nil {
		return false
	}
	key := entry.Key()
	v.sequence = max(v.sequence, entry.Revision())
	if entry.Operation() != jetstream.KeyValuePut {
		_, changed = v.good[key]
		delete(v.good, key)
		delete(v.bad, key)
		return changed
	}
	pol, err := decodePolicy(entry)
	if err == nil {
		v.good[key] = pol
		delete(v.bad, key)
		return true
	}
	if last := p.view.good[key]; last != nil {
		v.good[key] = last
	}
	if p.view.bad[key] != entry.Revision() {
		p.feed.Fault(fmt.Errorf("bucket %s revision %d: %w", PoliciesBucket, entry.Revision(), err))
	}
	v.bad[key] = entry.Revision()
	return false
}

// tell hands what is in force to the feed.
func (p *Policies) tell(changed, recovered bool) {
	if changed {
		p.feed.Replace(slices.SortedFunc(maps.Values(p.view.good), byName))
	}
	if recovered {
		p.feed.Recovered()
	}
}

// endWatch stops a watch and takes what it still holds, for its goroutine may
// wait for that. The channel is closed by the client once that one has ended.
func endWatch(w jetstream.KeyWatcher) {
	_ = w.Stop() // it fails only for a connection that is closed, which ends it too
	patience := time.NewTimer(policiesTimeout)
	defer patience.Stop()
	for {
		select {
		case _, open := <-w.Updates():
			if !open {
				return
			}
		case <-patience.C:
			return
		}
	}
}
