package policy

import (
	"context"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
)

// recorder is a feed whose events a test waits for.
type recorder struct {
	lists     chan []*ratelimit.Policy
	faults    chan error
	recovered chan struct{}
}

func newRecorder() *recorder {
	return &recorder{
		lists: make(chan []*ratelimit.Policy, 64), faults: make(chan error, 64), recovered: make(chan struct{}, 64),
	}
}

func (r *recorder) Replace(policies []*ratelimit.Policy) { r.lists <- policies }
func (r *recorder) Changed()                             {}
func (r *recorder) Fault(err error)                      { r.faults <- err }
func (r *recorder) Recovered()                           { r.recovered <- struct{}{} }

// within is the next value of ch, which has to come well inside a second.
func within[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(time.Second):
		t.Fatalf("no %s within a second", what)
		panic("unreachable")
	}
}

// none checks that nothing waits in ch.
func none[T any](t *testing.T, ch <-chan T, what string) {
	t.Helper()
	select {
	case v := <-ch:
		t.Fatalf("unexpected %s: %v", what, v)
	default:
	}
}

// list is a listed source that a test changes by hand.
type list struct {
	name string
	feed Feed
}

func (l *list) Name() string  { return l.name }
func (l *list) Attach(f Feed) { l.feed = f }

// asked is a source with fixed answers.
type asked struct {
	list
	answers map[name]*ratelimit.Policy
	fails   bool
	asks    int
}

func (a *asked) Ask(_ context.Context, function, version string) (*ratelimit.Policy, bool) {
	a.asks++
	return a.answers[name{function, version}], a.fails
}
