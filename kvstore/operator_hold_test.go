package kvstore

import (
	"testing"
	"testing/synctest"
	"time"
)

// newLoneOperator is an operator whose store is not started.
func newLoneOperator(t *testing.T) (*Operator, *holder) {
	t.Helper()
	cfg := testConfig(t)
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{}
	return NewOperator(s, h), h
}

// A hold ends by itself when whoever asked for it is gone, and not before: not
// within holdLife of the last time that it was asked for.
func TestOperator_holdExpires(t *testing.T) {
	o, h := newLoneOperator(t)
	synctest.Test(t, func(t *testing.T) {
		steps := []struct {
			ask  string
			wait time.Duration
			want int64
			why  string
		}{
			{askHold, holdLife - time.Millisecond, 1, "a hold lives that long"},
			{askHold, holdLife - time.Millisecond, 1, "asked for again it lives that long again"},
			{"", 2 * time.Millisecond, 0, "nobody let it go"},
			{askHold, time.Second, 1, "the name may be used again"},
			{askRelease, 0, 0, "it is let go"},
			{askRelease, 0, 0, "it was let go before"},
		}
		for i, s := range steps {
			if s.ask != "" {
				if a := o.do(t.Context(), operatorAsk{What: s.ask, Key: operatedKey, Name: "n"}); a.Fault != "" {
					t.Fatalf("step %d: %s", i, a.Fault)
				}
			}
			time.Sleep(s.wait)
			synctest.Wait()
			if got := h.holding.Load(); got != s.want {
				t.Fatalf("step %d (%s): %d holds, want %d", i, s.why, got, s.want)
			}
		}
	})
}

// Stop lets go of everything and takes no more holds; it may be called again.
func TestOperator_stopLetsGo(t *testing.T) {
	t.Parallel()
	o, h := newLoneOperator(t)
	for _, name := range []string{"a", "b"} {
		if a := o.do(t.Context(), operatorAsk{What: askHold, Key: operatedKey, Name: name}); a.Fault != "" {
			t.Fatal(a.Fault)
		}
	}
	for range 2 {
		if err := o.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := h.holding.Load(); got != 0 {
		t.Errorf("%d holds after Stop", got)
	}
	if a := o.do(t.Context(), operatorAsk{What: askHold, Key: operatedKey, Name: "c"}); a.Fault != errOperatorStopped.Error() || h.holding.Load() != 0 {
		t.Errorf("a hold after Stop: %+v, %d held", a, h.holding.Load())
	}
}

// What is not understood is told, not guessed.
func TestOperator_answersWhatItUnderstands(t *testing.T) {
	t.Parallel()
	o, h := newLoneOperator(t)
	for request, want := range map[string]string{
		`{"what":"forget"}`:         `{"fault":"\"forget\" is not understood"}`,
		`nonsense`:                  `{"fault":"the request is not understood"}`,
		`{"what":"leases"}`:         `{}`,
		`{"what":"refresh"}`:        `{}`,
		`{"what":"hold","name":""}`: `{}`,
		`{"what":"release"}`:        `{}`,
	} {
		if got := string(o.answer(t.Context(), []byte(request))); got != want {
			t.Errorf("%s: %s, want %s", request, got, want)
		}
	}
	o.letGo("")
	if got := h.holding.Load(); got != 0 {
		t.Errorf("%d holds", got)
	}
}

func TestOperator_holdsAreBounded(t *testing.T) {
	t.Parallel()
	o, h := newLoneOperator(t)
	defer func() { _ = o.Stop(t.Context()) }() // it has no error
	for i := range heldMost + 1 {
		a := o.do(t.Context(), operatorAsk{What: askHold, Key: operatedKey, Name: time.Duration(i).String()})
		if full := i == heldMost; (a.Fault != "") != full {
			t.Fatalf("hold %d: fault %q", i, a.Fault)
		}
	}
	if got := h.holding.Load(); got != heldMost {
		t.Errorf("%d holds, want %d", got, heldMost)
	}
}
