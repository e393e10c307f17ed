package kvstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// policiesTimeout bounds one dealing with the bucket whose context has no
// earlier end.
const policiesTimeout = 5 * time.Second

// Put writes a policy if the one in the bucket has the expected revision; 0
// expects that there is none. It returns the new revision. Errors: a joined
// [policy.Fault] list for a policy that is not valid, [*PolicyConflict],
// [ratelimit.ErrUnavailable], [ratelimit.ErrUnknown].
func (p *Policies) Put(ctx context.Context, pol *ratelimit.Policy, expected uint64) (uint64, error) {
	value, err := encodePolicy(pol)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, policiesTimeout)
	defer cancel()
	kv, err := p.bucket(ctx)
	if err != nil {
		return 0, err
	}
	key := policyKey(pol.Function, pol.Version)
	var revision uint64
	if expected == 0 {
		revision, err = kv.Create(ctx, key, value)
	} else {
		revision, err = kv.Update(ctx, key, value, expected)
	}
	if err != nil {
		return 0, p.refused(ctx, kv, pol.Function, pol.Version, expected, err)
	}
	return revision, nil
}

// encodePolicy gives the canonical form of a policy that reads back.
func encodePolicy(pol *ratelimit.Policy) ([]byte, error) {
	value, err := policy.EncodeJSON(pol)
	if err != nil {
		return nil, err
	}
	if _, _, err := policy.Parse(value); err != nil {
		return nil, err
	}
	return value, nil
}

// maxApplies bounds how often Apply starts over because others write too.
const maxApplies = 4

// Apply makes the policy what the bucket holds for its function's version,
// whatever was there. changed is false when it was the same already, in
// whatever spelling. Errors as for [Policies.Put].
func (p *Policies) Apply(ctx context.Context, pol *ratelimit.Policy) (revision uint64, changed bool, err error) {
	want, err := encodePolicy(pol)
	if err != nil {
		return 0, false, err
	}
	for range maxApplies {
		current, at, err := p.read(ctx, pol.Function, pol.Version)
		if err != nil && !errors.Is(err, ErrPolicyNotFound) && !errors.Is(err, policy.ErrPolicy) {
			return 0, false, err
		}
		if current != nil {
			have, err := policy.EncodeJSON(current)
			if err == nil && bytes.Equal(have, want) {
				return at, false, nil
			}
		}
		revision, err = p.Put(ctx, pol, at)
		if !errors.Is(err, ErrPolicyConflict) {
			return revision, err == nil, err
		}
	}
	return 0, false, &PolicyConflict{Function: pol.Function, Version: pol.Version}
}

// Delete removes a policy if it has the expected revision; 0 removes whichever
// it has. Errors: [ErrPolicyNotFound], [*PolicyConflict],
// [ratelimit.ErrUnavailable], [ratelimit.ErrUnknown].
func (p *Policies) Delete(ctx context.Context, function, version string, expected uint64) error {
	ctx, cancel := context.WithTimeout(ctx, policiesTimeout)
	defer cancel()
	_, at, err := p.read(ctx, function, version)
	if err != nil && !errors.Is(err, policy.ErrPolicy) {
		return err
	}
	if expected != 0 && expected != at {
		return &PolicyConflict{function, version, expected, at}
	}
	kv, err := p.bucket(ctx)
	if err != nil {
		return err
	}
	if err := kv.Delete(ctx, policyKey(function, version), jetstream.LastRevision(at)); err != nil {
		return p.refused(ctx, kv, function, version, at, err)
	}
	return nil
}

// Get reads one policy from the store; its Revision is a decimal number for
// [Policies.Put]. Errors: [ErrPolicyNotFound], a joined [policy.Fault] list for
// a value that does not parse, [ratelimit.ErrUnavailable].
func (p *Policies) Get(ctx context.Context, function, version string) (*ratelimit.Policy, error) {
	pol, _, err := p.read(ctx, function, version)
	return pol, err
}

// read tells the revision of a value that does not parse, too.
func (p *Policies) read(ctx context.Context, function, version string) (*ratelimit.Policy, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, policiesTimeout)
	defer cancel()
	kv, err := p.bucket(ctx)
	if err != nil {
		return nil, 0, err
	}
	entry, err := kv.Get(ctx, policyKey(function, version))
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound): // or deleted
		return nil, 0, fmt.Errorf("policy %q version %q: %w", function, version, ErrPolicyNotFound)
	case err != nil:
		return nil, 0, fmt.Errorf("%w: read policy: %w", ratelimit.ErrUnavailable, err)
	}
	pol, err := decodePolicy(entry)
	return pol, entry.Revision(), err
}

// List reads all policies from the store, sorted by function and version.
// Values that do not parse are left out and told by the error beside the list,
// which then joins [policy.Fault]s; any other error comes without a list.
func (p *Policies) List(ctx context.Context) ([]*ratelimit.Policy, error) {
	ctx, cancel := context.WithTimeout(ctx, policiesTimeout)
	defer cancel()
	kv, err := p.bucket(ctx)
	if err != nil {
		return nil, err
	}
	watch, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, fmt.Errorf("%w: list policies: %w", ratelimit.ErrUnavailable, err)
	}
	defer endWatch(watch)
	var (
		policies []*ratelimit.Policy
		faults   []error
	)
	for {
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: list policies: %w", ratelimit.ErrUnavailable, ctx.Err())
		case entry, open := <-watch.Updates():
			if !open {
				return nil, fmt.Errorf("%w: list policies: the watch ended", ratelimit.ErrUnavailable)
			}
			if entry == nil {
				slices.SortFunc(policies, byName)
				return policies, errors.Join(faults...)
			}
			pol, err := decodePolicy(entry)
			if err != nil {
				faults = append(faults, err)
				continue
			}
			policies = append(policies, pol)
		}
	}
}

func byName(a, b *ratelimit.Policy) int {
	return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Version, b.Version))
}

// decodePolicy reads a value and checks that it stands under its own key.
func decodePolicy(entry jetstream.KeyValueEntry) (*ratelimit.Policy, error) {
	policies, _, err := policy.Parse(entry.Value())
	if err != nil {
		faults := policy.Faults(err)
		for _, f := range faults {
			f.Place = "key " + entry.Key()
		}
		return nil, err
	}
	fault := &policy.Fault{Place: "key " + entry.Key()}
	if len(policies) != 1 {
		fault.Reason = fmt.Sprintf("holds %d policies, must hold one", len(policies))
		return nil, fault
	}
	pol := policies[0]
	if key := policyKey(pol.Function, pol.Version); key != entry.Key() {
		fault.Reason = fmt.Sprintf("holds the policy of key %s", key)
		return nil, fault
	}
	pol.Source, pol.Revision = policy.Bucket, strconv.FormatUint(entry.Revision(), 10)
	return pol, nil
}

// bucket is the policies bucket, once the store is joined.
func (p *Policies) bucket(ctx context.Context) (jetstream.KeyValue, error) {
	js := p.store.JetStream()
	if js == nil {
		return nil, errNotJoined
	}
	kv, err := js.KeyValue(ctx, PoliciesBucket)
	if err != nil {
		return nil, fmt.Errorf("%w: open bucket %s: %w", ratelimit.ErrUnavailable, PoliciesBucket, err)
	}
	return kv, nil
}

// refused says what became of a write that failed.
func (p *Policies) refused(ctx context.Context, kv jetstream.KeyValue, function, version string, expected uint64, err error) error {
	switch {
	case errors.Is(err, jetstream.ErrKeyExists), errors.Is(err, jetstream.ErrKeyRevisionMismatch):
		conflict := &PolicyConflict{Function: function, Version: version, Expected: expected}
		if entry, err := kv.Get(ctx, policyKey(function, version)); err == nil {
			conflict.Current = entry.Revision()
		}
		return conflict
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, jetstream.ErrNoStreamResponse),
		errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrConnectionClosed):
		return fmt.Errorf("%w: write policy: %w", ratelimit.ErrUnavailable, err)
	default:
		return fmt.Errorf("%w: write policy: %w", ratelimit.ErrUnknown, err)
	}
}
