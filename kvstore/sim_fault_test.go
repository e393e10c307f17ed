package kvstore

import (
	"math/rand/v2"
	"time"
)

// simPlan is how often which fault meets a message, each between 0 and 1.
type simPlan struct {
	Slow, Late        float64 // delayed by up to MaxDelay each way, or by MaxLate
	MaxDelay, MaxLate time.Duration

	Lost, Mute, Again           float64
	Refused, Conflict, Doubtful float64

	Latency time.Duration // of every message, each way, at most
}

// simFault is what goes wrong with one message and its answer. The zero
// simFault: nothing.
type simFault struct {
	before, after time.Duration // how long it travels, and how long its answer does
	lost          bool          // it never arrives
	mute          bool          // it arrives, and its answer does not
	again         time.Duration // a second copy arrives so much later; 0: none does
	dies          bool          // it is lost if its sender crashes meanwhile

	// What only the store does.
	refused  bool // nobody answers for the stream
	conflict bool // another write of the key is in flight
	doubtful bool // it is refused with an error that says nothing; mute: and stored
}

// newSimPlan: in some scenarios nothing but time is lost.
func newSimPlan(rng *rand.Rand, attempt time.Duration) simPlan {
	p := simPlan{
		Slow:     rng.Float64() * 0.2,
		MaxDelay: attempt / 8,
		Latency:  simPick(rng, 100*time.Microsecond, time.Millisecond, 3*time.Millisecond),
		Conflict: rng.Float64() * 0.1,
	}
	if rng.IntN(4) == 0 {
		return p
	}
	p.MaxDelay = simPick(rng, attempt/8, attempt, 2*attempt)
	p.Lost = rng.Float64() * 0.06
	p.Mute = rng.Float64() * 0.10
	p.Again = rng.Float64() * 0.10
	p.Refused = rng.Float64() * 0.06
	p.Doubtful = rng.Float64() * 0.04
	if rng.IntN(2) == 0 {
		p.Late = rng.Float64() * 0.06
		p.MaxLate = time.Duration(rng.Int64N(int64(3 * time.Second)))
	}
	return p
}

// draw draws the fault of a message.
func (p simPlan) draw(rng *rand.Rand) simFault {
	upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d) + 1)) }
	f := simFault{
		before:   upTo(p.Latency),
		after:    upTo(p.Latency),
		lost:     rng.Float64() < p.Lost,
		mute:     rng.Float64() < p.Mute,
		refused:  rng.Float64() < p.Refused,
		conflict: rng.Float64() < p.Conflict,
		doubtful: rng.Float64() < p.Doubtful,
		dies:     rng.IntN(2) == 0,
	}
	if rng.Float64() < p.Slow {
		f.before += upTo(p.MaxDelay)
		f.after += upTo(p.MaxDelay)
	}
	if rng.Float64() < p.Late {
		f.before += upTo(p.MaxLate)
	}
	if rng.Float64() < p.Again {
		f.again = 1 + upTo(simPick(rng, p.Latency, p.MaxDelay, p.MaxLate))
	}
	return f
}
