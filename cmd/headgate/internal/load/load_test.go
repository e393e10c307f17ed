package load

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// asker answers after a while, and remembers who asked.
type asker struct {
	takes  time.Duration
	answer func(account string) (Verdict, error)

	mu       sync.Mutex
	accounts map[string]int
}

func (a *asker) Ask(ctx context.Context, account string) (Verdict, error) {
	a.mu.Lock()
	if a.accounts == nil {
		a.accounts = make(map[string]int)
	}
	a.accounts[account]++
	a.mu.Unlock()
	select {
	case <-time.After(a.takes):
	case <-ctx.Done():
		return Verdict{}, ctx.Err()
	}
	if a.answer != nil {
		return a.answer(account)
	}
	return Verdict{Allowed: true}, nil
}

func (*asker) Close() error { return nil }

func plan() Plan {
	return Plan{Clients: 4, For: time.Second, Accounts: 2, Timeout: time.Minute}
}

// Without a rate every client asks again as soon as it is answered.
func TestRun_asFastAsAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := &asker{takes: 10 * time.Millisecond}
		got := Run(t.Context(), a, plan())
		if got.Calls != 400 || got.Allowed != 400 || got.Failed != 0 || got.Rate != 400 || got.Seconds != 1 {
			t.Errorf("%+v, want 4 clients with 100 calls each", got)
		}
		if l := got.Latency; l.P50 < 0.0099 || l.P50 > 0.0101 || l.Max != 0.01 {
			t.Errorf("latency %+v, want 10 ms", l)
		}
		if len(a.accounts) != 2 || a.accounts["bench-0"] != 200 || a.accounts["bench-1"] != 200 {
			t.Errorf("accounts %v, want two in turn", a.accounts)
		}
	})
}

// With a rate calls are due evenly. Where answers are too slow for it, what calls
// waited before they were made counts too.
func TestRun_atARate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := plan()
		p.Rate = 100
		got := Run(t.Context(), &asker{takes: 10 * time.Millisecond}, p)
		if got.Calls != 100 || got.Latency.Max != 0.01 {
			t.Errorf("%+v, want 100 calls of 10 ms", got)
		}
		p.Clients = 1
		got = Run(t.Context(), &asker{takes: 20 * time.Millisecond}, p)
		if got.Calls != 50 || got.Latency.Max < 0.5 || got.Latency.P50 < 0.25 {
			t.Errorf("%+v, want 50 calls, each later than the one before", got)
		}
	})
}

// Denials, degraded answers and failures are told apart, and the first failure
// says why.
func TestRun_outcomes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := plan()
		p.Accounts, p.Rate = 4, 400
		got := Run(t.Context(), &asker{takes: time.Millisecond, answer: func(account string) (Verdict, error) {
			switch account {
			case "bench-0":
				return Verdict{}, errors.New("no such door")
			case "bench-1":
				return Verdict{}, nil
			case "bench-2":
				return Verdict{Allowed: true, Degraded: true}, nil
			default:
				return Verdict{Allowed: true}, nil
			}
		}}, p)
		if got.Calls != 400 || got.Failed != 100 || got.Denied != 100 || got.Allowed != 200 || got.Degraded != 100 || got.Error != "no such door" {
			t.Errorf("%+v", got)
		}
	})
}

// The end of the context ends the run; a call that was begun is waited for.
func TestRun_interrupted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Millisecond)
		defer cancel()
		got := Run(ctx, &asker{takes: 10 * time.Millisecond}, plan())
		if got.Calls != 8 || got.Failed != 0 || got.Seconds != 0.02 {
			t.Errorf("%+v, want two calls of each client", got)
		}
	})
}

// A call that is not answered in time failed.
func TestRun_timeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := plan()
		p.Timeout = 100 * time.Millisecond
		got := Run(t.Context(), &asker{takes: time.Hour}, p)
		if got.Calls != 40 || got.Failed != 40 || got.Error != context.DeadlineExceeded.Error() || got.Latency != (Latency{}) {
			t.Errorf("%+v, want 40 calls without an answer", got)
		}
	})
}

func TestPlan_Validate(t *testing.T) {
	t.Parallel()
	if err := plan().Validate(); err != nil {
		t.Error(err)
	}
	for field, edit := range map[string]func(*Plan){
		"concurrency 0": func(p *Plan) { p.Clients = 0 },
		"rate -1":       func(p *Plan) { p.Rate = -1 },
		"for 0s":        func(p *Plan) { p.For = 0 },
		"accounts 0":    func(p *Plan) { p.Accounts = 0 },
		"timeout -1s":   func(p *Plan) { p.Timeout = -time.Second },
	} {
		p := plan()
		edit(&p)
		if err := p.Validate(); err == nil || !strings.HasPrefix(err.Error(), field+": must") {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Quantiles are right but for 1 part in 64, and never too low.
func TestHistogram(t *testing.T) {
	t.Parallel()
	var halves [2]histogram
	var all []time.Duration
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 10_000 {
		d := time.Duration(random.ExpFloat64() * float64(time.Millisecond))
		all = append(all, d)
		halves[i%2].add(d)
	}
	slices.Sort(all)
	h := &halves[0]
	h.merge(&halves[1])
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 0.999, 1} {
		want := all[min(int(q*10_000), 9_999)]
		if got := h.quantile(q); got < want || float64(got) > float64(want)*65/64+1 {
			t.Errorf("quantile %g: %v, want %v", q, got, want)
		}
	}
	for _, d := range []time.Duration{0, 1, 63, 64, 65, 127, 128, 1 << 40, 1<<63 - 1} {
		b := bucketOf(d)
		if upperOf(b) < d || b > 0 && upperOf(b-1) >= d {
			t.Errorf("%d is in bucket %d, from %d to %d", d, b, upperOf(b-1)+1, upperOf(b))
		}
	}
	if got := new(histogram).quantile(0.5); got != 0 {
		t.Errorf("quantile of nothing: %v", got)
	}
}
