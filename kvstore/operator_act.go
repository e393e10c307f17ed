package kvstore

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// holdRounds bounds how often all nodes are asked to hold a counter: once, once
// more when some were silent, and once more when others came meanwhile.
const holdRounds = 3

// exchangePause is how long to wait before an exchange is tried again.
const exchangePause = 20 * time.Millisecond

// Reset forgets what was spent of a counter that counts for rates. Before, every
// node ends its leases on the counter and settles what it owes, and none grants
// anything until it is done; so the full budget is there afterwards, and no lease
// of before comes on top. Invocations wait meanwhile, no longer than they ever
// do.
//
// A node that does not answer, asked twice, is taken as gone: the longest life of
// a lease is waited out, before the others are held if it is silent by then, so
// that none of its leases is left. If it was only cut off, what it hands back later
// of such a lease is taken off what was spent after the reset.
//
// The error is a [*ResetError].
func (o *Operator) Reset(ctx context.Context, key ratelimit.Key, rates []counter.Rate) error {
	gone, err := o.gone(ctx)
	if err != nil {
		return &ResetError{Silent: gone, Err: err}
	}
	name := rand.Text()
	defer o.release(ctx, name)
	silent, err := o.holdAll(ctx, operatorAsk{What: askHold, Key: key, Name: name}, gone)
	if err != nil {
		return &ResetError{Silent: silent, Refused: refusing(err), Err: err}
	}
	// Nobody is granted anything, so a reset of unknown outcome may be made again.
	again := func(err error) bool {
		return errors.Is(err, ratelimit.ErrUnavailable) || errors.Is(err, ratelimit.ErrUnknown)
	}
	if err := o.exchange(ctx, ratelimit.Exchange{Key: key, Rates: rates, Reset: true}, again); err != nil {
		return &ResetError{Silent: silent, Err: err}
	}
	if len(silent) > 0 {
		o.store.log.Warn("a counter was reset without nodes that do not answer; their leases have ended", "nodes", silent)
	}
	return nil
}

// release has all nodes let go. Those that do not hear of it let go by
// themselves.
func (o *Operator) release(ctx context.Context, name string) {
	_, _, _ = o.ask(context.WithoutCancel(ctx), operatorAsk{What: askRelease, Name: name}, askPatience)
}

// gone names the nodes that are silent, and waits until the leases that they had
// have ended.
func (o *Operator) gone(ctx context.Context) ([]string, error) {
	_, silent, err := o.ask(ctx, operatorAsk{What: askLeases}, askPatience)
	if err == nil && len(silent) > 0 {
		err = o.outwait(ctx)
	}
	return silent, err
}

// holdAll has all nodes hold a counter and names those that are silent, whose
// leases have then ended, as those of the nodes that are gone have already. The
// error joins what nodes say that cannot, and is [ratelimit.ErrUnavailable].
func (o *Operator) holdAll(ctx context.Context, hold operatorAsk, gone []string) (silent []string, err error) {
	waited := false
	for range holdRounds {
		answers, quiet, err := o.ask(ctx, hold, holdPatience)
		if err != nil {
			return quiet, err
		}
		silent = quiet
		fresh := slices.ContainsFunc(silent, func(node string) bool { return !slices.Contains(gone, node) })
		switch {
		case fresh && !waited:
			waited = true
			if err := o.outwait(ctx); err != nil {
				return silent, err
			}
		case o.knows(answers, silent):
			return silent, nil
		}
	}
	return silent, nil
}

// outwait waits until no lease that was given before is left.
func (o *Operator) outwait(ctx context.Context) error {
	timer := time.NewTimer(ratelimit.MaxLease + 2*o.store.clock.Error())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: wait for leases to end: %w", ratelimit.ErrUnavailable, ctx.Err())
	}
}

// knows reports whether all nodes that are alive now are among those that
// answered or stayed silent.
func (o *Operator) knows(answers map[string]operatorAnswer, silent []string) bool {
	return !slices.ContainsFunc(o.store.nodes.members.others(), func(node string) bool {
		_, answered := answers[node]
		return !answered && !slices.Contains(silent, node)
	})
}

// Grant gives a counter that counts for rates units on top of them in the current
// windows, and has every node read it again. Errors: [ratelimit.ErrUnavailable],
// nothing was given, and [ratelimit.ErrUnknown], it may have been. A node that
// cannot be told finds out with its next exchange.
func (o *Operator) Grant(ctx context.Context, key ratelimit.Key, rates []counter.Rate, units int64) error {
	again := func(err error) bool { return errors.Is(err, ratelimit.ErrUnavailable) }
	if err := o.exchange(ctx, ratelimit.Exchange{Key: key, Rates: rates, Add: units}, again); err != nil {
		return fmt.Errorf("grant units: %w", err)
	}
	_, _, _ = o.ask(ctx, operatorAsk{What: askRefresh, Key: key}, holdPatience) // as said above
	return nil
}

// exchange settles an exchange, and tries again after errors that allow it.
func (o *Operator) exchange(ctx context.Context, x ratelimit.Exchange, again func(error) bool) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	var doubt error // of an earlier try
	for {
		x.Node, x.Serial = o.node, o.serial.Add(1)
		_, err := o.store.Exchange(ctx, x)
		if err == nil || !again(err) || !sleep(ctx, exchangePause) {
			return worse(doubt, err)
		}
		if errors.Is(err, ratelimit.ErrUnknown) {
			doubt = err
		}
	}
}

// worse is what is known after the last of several tries: where an earlier one may
// have been applied, a last one that was not changes nothing.
func worse(earlier, last error) error {
	if last == nil || earlier == nil {
		return last
	}
	return earlier
}

// sleep waits; false: ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// NodeLease is units of a counter that a node may spend without asking.
type NodeLease struct {
	Node  string
	Units int64
	Until time.Duration // from now
}

// Leases asks every node what it may spend of a counter without asking, and lists
// those that may, by name, beside the nodes that do not answer. The error is
// [ratelimit.ErrUnavailable] before the store is joined.
func (o *Operator) Leases(ctx context.Context, key ratelimit.Key) (leases []NodeLease, silent []string, err error) {
	answers, silent, err := o.ask(ctx, operatorAsk{What: askLeases, Key: key}, askPatience)
	if err != nil {
		return nil, silent, err
	}
	for node, a := range answers {
		if a.Units > 0 {
			leases = append(leases, NodeLease{Node: node, Units: a.Units, Until: a.Until})
		}
	}
	slices.SortFunc(leases, func(a, b NodeLease) int { return cmp.Compare(a.Node, b.Node) })
	return leases, silent, nil
}

// ask asks every node that is alive, this one too, and names those that do not
// answer within patience. The error joins what nodes say that they cannot.
func (o *Operator) ask(
	ctx context.Context, ask operatorAsk, patience time.Duration,
) (answers map[string]operatorAnswer, silent []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := json.Marshal(ask)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a request to the nodes: %w", err)
	}
	own := make(chan operatorAnswer, 1)
	go func() { own <- o.do(ctx, ask) }() // waited for below
	raw, silent, err := o.store.askPeers(ctx, request)
	answers = map[string]operatorAnswer{o.store.cfg.NodeName: <-own}
	for node, data := range raw {
		var a operatorAnswer
		if json.Unmarshal(data, &a) != nil {
			a.Fault = "its answer is not understood"
		}
		answers[node] = a
	}
	return answers, silent, errors.Join(err, refusals(answers))
}

// refusals joins what nodes say that they cannot.
func refusals(answers map[string]operatorAnswer) error {
	var all []error
	for _, node := range slices.Sorted(maps.Keys(answers)) {
		if a := answers[node]; a.Fault != "" {
			all = append(all, &refusal{node: node, why: a.Fault})
		}
	}
	return errors.Join(all...)
}
