package invocation_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for something that happens at once.
const patience = 10 * time.Second

// fakeDecider answers with what it was told, and remembers what it was asked.
type fakeDecider struct {
	answer    func(context.Context, ratelimit.Invocation) (ratelimit.Decision, error)
	standings []ratelimit.Standing

	mu    sync.Mutex
	asked []ratelimit.Invocation
}

func (f *fakeDecider) Decide(ctx context.Context, inv ratelimit.Invocation) (ratelimit.Decision, error) {
	f.mu.Lock()
	f.asked = append(f.asked, inv)
	f.mu.Unlock()
	if f.answer == nil {
		return ratelimit.Decision{Outcome: ratelimit.Admitted, Remaining: ratelimit.Unlimited}, nil
	}
	return f.answer(ctx, inv)
}

func (f *fakeDecider) Standings(context.Context, ratelimit.Invocation) []ratelimit.Standing {
	return f.standings
}

// last is the invocation that was asked about last; false when there was none.
func (f *fakeDecider) last() (ratelimit.Invocation, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		return ratelimit.Invocation{}, false
	}
	return f.asked[len(f.asked)-1], true
}

func decides(d ratelimit.Decision, standings ...ratelimit.Standing) *fakeDecider {
	return &fakeDecider{
		answer:    func(context.Context, ratelimit.Invocation) (ratelimit.Decision, error) { return d, nil },
		standings: standings,
	}
}

func fails(err error) *fakeDecider {
	return &fakeDecider{answer: func(context.Context, ratelimit.Invocation) (ratelimit.Decision, error) {
		return ratelimit.Decision{}, err
	}}
}

// openGate is a gate that lets invocations in.
func openGate(t *testing.T, d invocation.Decider, opts ...invocation.Option) *invocation.Gate {
	t.Helper()
	g, err := invocation.NewGate(d, opts...)
	if err != nil {
		t.Fatal(err)
	}
	g.Open()
	return g
}

func rate(t *testing.T, text string) counter.Rate {
	t.Helper()
	r, err := counter.ParseRate(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
