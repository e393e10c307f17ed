package lifecycle

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var quiet = slog.New(slog.DiscardHandler)

// patient is a step that needs took and obeys its context.
func patient(took time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		select {
		case <-time.After(took):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// shutdownOf is the four steps of a real shutdown with the default bounds.
func shutdownOf(doors, settle, leave time.Duration) Sequence {
	return Sequence{
		{Name: "notice", Bound: 3 * time.Second, Func: Notice},
		{Name: "doors", Bound: 10 * time.Second, Func: patient(doors)},
		{Name: "settle", Bound: 8 * time.Second, Settles: true, Func: patient(settle)},
		{Name: "leave", Bound: 5 * time.Second, Func: patient(leave)},
	}
}

func took(r Report) []time.Duration {
	var out []time.Duration
	for _, res := range r {
		out = append(out, res.Took)
	}
	return out
}

func TestSequence_Run(t *testing.T) {
	t.Parallel()
	const s, never = time.Second, time.Hour
	cases := []struct {
		name   string
		seq    Sequence
		hurry  time.Duration // when the second signal comes; 0 never
		took   []time.Duration
		faulty []string
		code   int
	}{
		{name: "all goes well", seq: shutdownOf(s, 2*s, 1*s), took: []time.Duration{3 * s, s, 2 * s, s}},
		{
			name: "doors that do not close are forced and settlement still runs",
			seq:  shutdownOf(never, s, s), took: []time.Duration{3 * s, 10 * s, s, s}, faulty: []string{"doors"},
		},
		{
			name: "what stays unsettled makes the exit code 1",
			seq:  shutdownOf(s, never, s), took: []time.Duration{3 * s, s, 8 * s, s}, faulty: []string{"settle"}, code: 1,
		},
		{
			name: "a step that fails to leave is told, nothing was lost",
			seq:  shutdownOf(s, s, never), took: []time.Duration{3 * s, s, s, 5 * s}, faulty: []string{"leave"},
		},
		{
			name: "hurry during the notice goes to settlement at once",
			seq:  shutdownOf(never, 2*s, s), hurry: s, took: []time.Duration{s, 0, 2 * s, s}, faulty: []string{"doors"},
		},
		{
			name: "hurry during settlement changes nothing",
			seq:  shutdownOf(s, 6*s, s), hurry: 5 * s, took: []time.Duration{3 * s, s, 6 * s, s},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { runSequence(t, c.seq, c.hurry, c.took, c.faulty, c.code) })
		})
	}
}

func runSequence(t *testing.T, seq Sequence, hurry time.Duration, wantTook []time.Duration, faulty []string, code int) {
	t.Helper()
	second := make(chan struct{})
	if hurry > 0 {
		time.AfterFunc(hurry, func() { close(second) })
	}
	r := seq.Run(t.Context(), second, quiet)
	if got := took(r); !slices.Equal(got, wantTook) {
		t.Errorf("steps took %v, want %v", got, wantTook)
	}
	var bad []string
	for _, res := range r {
		if res.Err != nil {
			bad = append(bad, res.Name)
		}
	}
	if !slices.Equal(bad, faulty) {
		t.Errorf("failed steps %v, want %v", bad, faulty)
	}
	if r.ExitCode() != code {
		t.Errorf("exit code %d, want %d", r.ExitCode(), code)
	}
}

// A step that ignores its context is left behind after the slack, by name.
func TestSequence_overrun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := Sequence{
			{Name: "deaf", Bound: time.Second, Func: func(context.Context) error { <-release; return nil }},
			{Name: "next", Bound: time.Second, Func: patient(0)},
		}.Run(t.Context(), nil, quiet)
		close(release)

		var step *StepError
		if err := r.Err(); !errors.As(err, &step) || step.Step != "deaf" || !errors.Is(err, ErrOverran) {
			t.Errorf("error %v, want deaf to have overrun", err)
		}
		if got := took(r); got[0] != time.Second+Slack || got[1] != 0 {
			t.Errorf("took %v", got)
		}
	})
}

// The context of the caller does not end a shutdown: it is what began it.
func TestSequence_runsWithAnEndedContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if r := shutdownOf(0, time.Second, 0).Run(ctx, nil, quiet); r.Err() != nil {
			t.Errorf("error %v", r.Err())
		}
	})
}

// All errors are there, each under the name of its step.
func TestReport_Err(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		r := Sequence{
			{Name: "one", Bound: time.Second, Func: func(context.Context) error { return broken }},
			{Name: "two", Bound: time.Second, Func: patient(time.Hour)},
		}.Run(t.Context(), nil, quiet)
		if err := r.Err(); !errors.Is(err, broken) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want both", err)
		}
		if want := "one: broken\ntwo: context deadline exceeded"; r.Err().Error() != want {
			t.Errorf("error %q, want %q", r.Err(), want)
		}
	})
}
