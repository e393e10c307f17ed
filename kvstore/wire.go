package kvstore

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/headgate-io/headgate/kvstore/recordpb"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// errAsk: what came in is no exchange that this release can settle.
var errAsk = errors.New("not an exchange")

// ask is an exchange between nodes.
type ask struct {
	x ratelimit.Exchange
	// issued is the earliest instant at which it can have been settled.
	issued counter.Instant
	// patience is how long somebody cares what it comes to.
	patience time.Duration
	// repeated: its owner left it in doubt. Not in the message, but in the subject
	// that it comes on.
	repeated bool
}

// subject goes before the name of the node that an ask is sent to.
func (a ask) subject() string {
	if a.repeated {
		return deputySubject
	}
	return ownerSubject
}

// way is the itinerary of an exchange that was sent to another node.
func (a ask) way() itinerary {
	return itinerary{travels: true, repeated: a.repeated, issued: a.issued}
}

func encodeAsk(a ask) ([]byte, error) {
	x := a.x
	pb := &recordpb.Ask{
		Key:      string(x.Key),
		Want:     x.Want,
		Life:     int64(x.Life),
		Reset_:   x.Reset,
		Add:      x.Add,
		Node:     x.Node,
		Serial:   x.Serial,
		Issued:   uint64(a.issued),
		Patience: int64(a.patience),
	}
	for _, r := range x.Rates {
		pb.Rates = append(pb.Rates, &recordpb.Rate{
			Units: r.Units, Period: uint64(r.Period), Algorithm: uint32(r.Algorithm), Burst: r.Burst,
		})
	}
	for _, r := range x.Returns {
		pb.Returns = append(pb.Returns, &recordpb.Return{Units: r.Units, Until: uint64(r.Until)})
	}
	for _, p := range x.Posts {
		pb.Posts = append(pb.Posts, &recordpb.Post{Units: p.Units, At: uint64(p.At)})
	}
	for _, n := range x.Needs {
		pb.Needs = append(pb.Needs, &recordpb.Need{Cost: n.Cost, Count: n.Count})
	}
	data, err := proto.Marshal(pb)
	if err != nil {
		return nil, fmt.Errorf("encode exchange: %w", err)
	}
	return data, nil
}

// decodeAsk is strict: what it lets through, the arithmetic may work on. The
// error is errAsk.
func decodeAsk(data []byte) (ask, error) {
	var pb recordpb.Ask
	if err := proto.Unmarshal(data, &pb); err != nil {
		return ask{}, fmt.Errorf("%w: %w", errAsk, err)
	}
	a := ask{
		x: ratelimit.Exchange{
			Key:    ratelimit.Key(pb.GetKey()),
			Want:   pb.GetWant(),
			Life:   time.Duration(pb.GetLife()),
			Reset:  pb.GetReset_(),
			Add:    pb.GetAdd(),
			Node:   pb.GetNode(),
			Serial: pb.GetSerial(),
		},
		issued:   counter.Instant(pb.GetIssued()),
		patience: time.Duration(pb.GetPatience()),
	}
	var err error
	if a.x.Rates, err = ratesFromWire(pb.GetRates()); err != nil {
		return ask{}, fmt.Errorf("%w: %w", errAsk, err)
	}
	a.x.Returns, a.x.Posts, a.x.Needs = listsFromWire(&pb)
	if err := a.validate(); err != nil {
		return ask{}, fmt.Errorf("%w: %w", errAsk, err)
	}
	return a, nil
}

func ratesFromWire(list []*recordpb.Rate) ([]counter.Rate, error) {
	rates := make([]counter.Rate, 0, len(list))
	for i, pb := range list {
		if pb.GetAlgorithm() > math.MaxUint8 {
			return nil, fmt.Errorf("rate %d: algorithm %d is unknown", i, pb.GetAlgorithm())
		}
		r := counter.Rate{
			Units:     pb.GetUnits(),
			Period:    time.Duration(pb.GetPeriod()),
			Algorithm: counter.Algorithm(pb.GetAlgorithm()),
			Burst:     pb.GetBurst(),
		}
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("rate %d: %w", i, err)
		}
		rates = append(rates, r)
	}
	return rates, nil
}

func listsFromWire(pb *recordpb.Ask) (returns []ratelimit.Return, posts []ratelimit.Post, needs []ratelimit.Need) {
	for _, r := range pb.GetReturns() {
		returns = append(returns, ratelimit.Return{Units: r.GetUnits(), Until: counter.Instant(r.GetUntil())})
	}
	for _, p := range pb.GetPosts() {
		posts = append(posts, ratelimit.Post{Units: p.GetUnits(), At: counter.Instant(p.GetAt())})
	}
	for _, n := range pb.GetNeeds() {
		needs = append(needs, ratelimit.Need{Cost: n.GetCost(), Count: n.GetCount()})
	}
	return returns, posts, needs
}

func (a ask) validate() error {
	if err := checkExchange(a.x); err != nil {
		return err
	}
	if nameOf(a.x) == (name{}) {
		return errors.New("no node or no serial")
	}
	if a.issued <= 0 || a.patience <= 0 || a.x.Life < 0 {
		return fmt.Errorf("issued %d, patience %d or life %d is out of bounds", a.issued, a.patience, a.x.Life)
	}
	amounts := []int64{a.x.Want, a.x.Add}
	for _, r := range a.x.Returns {
		amounts = append(amounts, r.Units, int64(r.Until))
	}
	for _, p := range a.x.Posts {
		amounts = append(amounts, p.Units, int64(p.At))
	}
	for _, n := range a.x.Needs {
		amounts = append(amounts, n.Cost, n.Count)
	}
	for _, n := range amounts {
		if n < 0 {
			return fmt.Errorf("a negative amount: %d", n)
		}
	}
	return nil
}

// encodeAnswer puts what a settler said on the wire. The state is encoded once for
// all who were settled together, and only one worker does so: two encodings in a
// row are one of both messages.
func encodeAnswer(o outcome) ([]byte, error) {
	data, err := proto.Marshal(answerOf(o.grant, o.err))
	if err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	if o.err != nil {
		return data, nil
	}
	if o.state.onWire == nil {
		o.state.onWire, err = proto.Marshal(&recordpb.Answer{State: counterToWire(o.state.counter)})
		if err != nil {
			return nil, fmt.Errorf("encode state: %w", err)
		}
	}
	return append(data, o.state.onWire...), nil
}

// answerOf is an answer without the counter's state.
func answerOf(g ratelimit.Grant, err error) *recordpb.Answer {
	if err == nil {
		return &recordpb.Answer{
			Outcome: recordpb.Outcome_OUTCOME_SETTLED,
			Units:   g.Units,
			Until:   uint64(g.Until),
			At:      uint64(g.At),
		}
	}
	a := &recordpb.Answer{Reason: err.Error()}
	switch errorResult(err) {
	case exchangeRefused:
		a.Outcome = recordpb.Outcome_OUTCOME_NEWER_FORMAT
	case exchangeUnknown:
		a.Outcome = recordpb.Outcome_OUTCOME_UNKNOWN
	default:
		a.Outcome = recordpb.Outcome_OUTCOME_UNAVAILABLE
	}
	return a
}

// grantFrom reads a settled answer.
func grantFrom(pb *recordpb.Answer) (ratelimit.Grant, error) {
	state, err := counterFromWire(pb.GetState())
	if err != nil {
		return ratelimit.Grant{}, fmt.Errorf("state in the owner's answer: %w", err)
	}
	if pb.GetUnits() < 0 {
		return ratelimit.Grant{}, fmt.Errorf("the owner's answer grants %d units", pb.GetUnits())
	}
	return ratelimit.Grant{
		Units: pb.GetUnits(),
		Until: counter.Instant(pb.GetUntil()),
		At:    counter.Instant(pb.GetAt()),
		State: state,
	}, nil
}
