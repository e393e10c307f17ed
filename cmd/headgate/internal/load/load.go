// Package load asks a running headgate again and again and measures how it
// answers.
package load

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Verdict is how a headgate answered one call.
type Verdict struct{ Allowed, Degraded bool }

// Asker asks one headgate. It must be safe for concurrent use.
type Asker interface {
	// Ask has one invocation of an account decided.
	Ask(ctx context.Context, account string) (Verdict, error)
	Close() error
}

// Plan is what to ask.
type Plan struct {
	// Clients ask at a time, each one call after the other.
	Clients int
	// Rate is how many calls per second all of them make together; 0 means as
	// many as there are answers. Where answers come too slowly for it, calls are
	// late, and their latency counts from when they were due.
	Rate float64
	// For is how long calls are begun.
	For time.Duration
	// Accounts is how many accounts call, in turn.
	Accounts int
	// Timeout bounds one call.
	Timeout time.Duration
}

// Validate names every field that cannot be.
func (p Plan) Validate() error {
	switch {
	case p.Clients < 1 || p.Clients > 10_000:
		return fmt.Errorf("concurrency %d: must be 1 to 10000", p.Clients)
	case p.Rate < 0:
		return fmt.Errorf("rate %g: must not be negative", p.Rate)
	case p.For <= 0:
		return fmt.Errorf("for %v: must be positive", p.For)
	case p.Accounts < 1:
		return fmt.Errorf("accounts %d: must be at least 1", p.Accounts)
	case p.Timeout <= 0:
		return fmt.Errorf("timeout %v: must be positive", p.Timeout)
	default:
		return nil
	}
}

// Result is what came of a plan.
type Result struct {
	Calls    int64   `json:"calls"`
	Allowed  int64   `json:"allowed"`
	Denied   int64   `json:"denied"`
	Degraded int64   `json:"degraded"` // of the above, as far as the wire tells
	Failed   int64   `json:"failed"`   // calls without an answer
	Seconds  float64 `json:"seconds"`
	Rate     float64 `json:"rate"` // answers per second
	// Latency is that of the calls that were answered, in seconds.
	Latency Latency `json:"latency"`
	// Error is the first reason of a call that failed; empty when none did.
	Error string `json:"error"`
}

// Latency is how long answers took, in seconds.
type Latency struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`
}

// run is a plan being carried out.
type run struct {
	plan  Plan
	asker Asker
	began time.Time
	next  atomic.Int64 // number of the next call
}

// tally is what one client saw.
type tally struct {
	result  Result
	latency histogram
}

// Run carries out a plan, until it is done or ctx ends. The plan must be valid.
func Run(ctx context.Context, asker Asker, plan Plan) Result {
	r := &run{plan: plan, asker: asker, began: time.Now()}
	tallies := make([]tally, plan.Clients)
	var clients sync.WaitGroup
	for i := range tallies {
		clients.Go(func() { r.client(ctx, &tallies[i]) })
	}
	clients.Wait()
	return sum(tallies, time.Since(r.began))
}

// client makes calls until the time is over or ctx ends; one that was begun is
// waited for.
func (r *run) client(ctx context.Context, t *tally) {
	for {
		n := r.next.Add(1) - 1
		due, ok := r.await(ctx, n)
		if !ok {
			return
		}
		r.call(context.WithoutCancel(ctx), t, "bench-"+strconv.FormatInt(n%int64(r.plan.Accounts), 10), due)
	}
}

// await waits until a call is due; false: it is not to be made any more.
func (r *run) await(ctx context.Context, n int64) (due time.Time, ok bool) {
	end := r.began.Add(r.plan.For)
	if r.plan.Rate == 0 {
		due = time.Now()
		return due, due.Before(end) && ctx.Err() == nil
	}
	due = r.began.Add(time.Duration(float64(n) / r.plan.Rate * float64(time.Second)))
	if !due.Before(end) {
		return due, false
	}
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return due, time.Now().Before(end) && ctx.Err() == nil
}

func (r *run) call(ctx context.Context, t *tally, account string, due time.Time) {
	ctx, cancel := context.WithTimeout(ctx, r.plan.Timeout)
	defer cancel()
	v, err := r.asker.Ask(ctx, account)
	took := time.Since(due)
	s := &t.result
	s.Calls++
	switch {
	case err != nil:
		s.Failed++
		if s.Error == "" {
			s.Error = err.Error()
		}
		return
	case v.Allowed:
		s.Allowed++
	default:
		s.Denied++
	}
	if v.Degraded {
		s.Degraded++
	}
	t.latency.add(took)
}

func sum(tallies []tally, span time.Duration) Result {
	var all Result
	var latency histogram
	for i := range tallies {
		s := &tallies[i].result
		all.Calls += s.Calls
		all.Allowed += s.Allowed
		all.Denied += s.Denied
		all.Degraded += s.Degraded
		all.Failed += s.Failed
		if all.Error == "" {
			all.Error = s.Error
		}
		latency.merge(&tallies[i].latency)
	}
	all.Seconds = span.Seconds()
	all.Rate = float64(latency.total) / all.Seconds
	all.Latency = Latency{
		P50: latency.quantile(0.50).Seconds(), P90: latency.quantile(0.90).Seconds(),
		P99: latency.quantile(0.99).Seconds(), P999: latency.quantile(0.999).Seconds(), Max: latency.max.Seconds(),
	}
	return all
}
