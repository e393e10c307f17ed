package kvstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// What operators ask of nodes.
const (
	askHold    = "hold"    // end your leases on a counter and grant nothing
	askRelease = "release" // go on
	askRefresh = "refresh" // read the counter again
	askLeases  = "leases"  // what do you hold of it
)

// operatorAsk is what an operator asks of every node, as JSON.
type operatorAsk struct {
	What string        `json:"what"`
	Key  ratelimit.Key `json:"key,omitempty"`
	Name string        `json:"name,omitempty"` // of the hold
}

// operatorAnswer is what a node answers. What it does not understand is a fault,
// so that releases which differ do not misunderstand one another.
type operatorAnswer struct {
	Units int64         `json:"units,omitempty"`
	Until time.Duration `json:"untilNs,omitempty"` // from now
	Fault string        `json:"fault,omitempty"`
}

// answer answers another node.
func (o *Operator) answer(ctx context.Context, request []byte) []byte {
	var a operatorAnswer
	var ask operatorAsk
	if err := json.Unmarshal(request, &ask); err != nil {
		a.Fault = "the request is not understood"
	} else {
		a = o.do(ctx, ask)
	}
	data, err := json.Marshal(a)
	if err != nil { // numbers and texts always encode
		panic(err)
	}
	return data
}

// do does at this node what an operator asks of every node.
func (o *Operator) do(ctx context.Context, ask operatorAsk) operatorAnswer {
	switch ask.What {
	case askHold:
		return faultOf(o.hold(ctx, ask.Name, ask.Key))
	case askRelease:
		o.letGo(ask.Name)
		return operatorAnswer{}
	case askRefresh:
		return faultOf(o.refresh(ctx, ask.Key))
	case askLeases:
		return o.leased(ask.Key)
	default:
		return operatorAnswer{Fault: fmt.Sprintf("%q is not understood", ask.What)}
	}
}

func faultOf(err error) operatorAnswer {
	if err == nil {
		return operatorAnswer{}
	}
	return operatorAnswer{Fault: err.Error()}
}

// refresh makes the node forget what it knows of a counter, which is what the
// end of a hold does.
func (o *Operator) refresh(ctx context.Context, key ratelimit.Key) error {
	ctx, cancel := context.WithTimeout(ctx, holdWithin)
	defer cancel()
	release, err := o.holder.Hold(ctx, key)
	if err == nil {
		release()
	}
	return err
}

// leased is what this node may spend of a counter without asking.
func (o *Operator) leased(key ratelimit.Key) operatorAnswer {
	units, until := o.holder.Leased(key)
	left := until.Sub(o.store.clock.Now())
	if units <= 0 || left <= 0 {
		return operatorAnswer{}
	}
	return operatorAnswer{Units: units, Until: left}
}
