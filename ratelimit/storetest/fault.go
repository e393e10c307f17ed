package storetest

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// Fault is what goes wrong with one exchange. The zero Fault: nothing.
type Fault struct {
	// Before is how long the request travels, After how long the answer does.
	// A caller who gives up meanwhile gets its context's error; the request
	// arrives all the same.
	Before, After time.Duration
	// Conflicts is how often the settlement is lost to another writer and done
	// again.
	Conflicts int
	// Loss is what never arrives.
	Loss Loss
	// Forget: if the exchange is a repeat, the store can no longer tell what
	// became of it.
	Forget bool
	// Late is how long after the caller was told [ratelimit.ErrUnknown] the
	// exchange is applied; only with [LateRequest].
	Late time.Duration
}

// Loss says which part of an exchange is lost. The zero Loss is none.
type Loss uint8

// What can be lost, and what the caller is told.
const (
	NoLoss         Loss = iota
	RefusedRequest      // not applied: ErrUnavailable
	LostRequest         // not applied: ErrUnknown
	LateRequest         // applied after Fault.Late: ErrUnknown at once
	LostAnswer          // applied: ErrUnknown
)

// FaultFunc decides the fault of an exchange. It is called once for each, by
// many goroutines at once, and must not call back into the store.
type FaultFunc func(ratelimit.Exchange) Fault

// Plan is how often which fault happens, each between 0 and 1; the losses are
// drawn in the order of the fields and exclude each other.
type Plan struct {
	Refused, Lost, LateShare, LostAnswers float64

	// Forgotten is the share of repeats that come too late to tell.
	Forgotten float64

	// Slow is the share of exchanges that are delayed, each way by up to
	// MaxDelay; MaxLate bounds Fault.Late.
	Slow, Conflicted  float64
	MaxDelay, MaxLate time.Duration
}

// Faults returns a FaultFunc that draws from the plan with the seed. The same
// calls in the same order have the same faults.
func (p Plan) Faults(seed uint64) FaultFunc {
	var mu sync.Mutex
	rng := rand.New(rand.NewPCG(seed, seed^0x9e3779b97f4a7c15))
	return func(ratelimit.Exchange) Fault {
		mu.Lock()
		defer mu.Unlock()
		return p.Draw(rng)
	}
}

// Draw draws one fault from the plan. It takes the same number of values from
// rng whatever it draws, so that a changed plan does not shift the faults behind
// it.
func (p Plan) Draw(rng *rand.Rand) Fault {
	loss, slow, conflicted := rng.Float64(), rng.Float64(), rng.Float64()
	before, after, late := rng.Float64(), rng.Float64(), rng.Float64()
	forget := rng.Float64()

	f := Fault{Loss: p.loss(loss), Forget: forget < p.Forgotten}
	if slow < p.Slow {
		f.Before = time.Duration(before * float64(p.MaxDelay))
		f.After = time.Duration(after * float64(p.MaxDelay))
	}
	if conflicted < p.Conflicted {
		f.Conflicts = 1 + int(before*3)
	}
	if f.Loss == LateRequest {
		f.Late = time.Duration(late * float64(p.MaxLate))
	}
	return f
}

func (p Plan) loss(x float64) Loss {
	shares := [...]struct {
		share float64
		loss  Loss
	}{{p.Refused, RefusedRequest}, {p.Lost, LostRequest}, {p.LateShare, LateRequest}, {p.LostAnswers, LostAnswer}}
	for _, s := range shares {
		if x < s.share {
			return s.loss
		}
		x -= s.share
	}
	return NoLoss
}
