package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// Step is one part of a shutdown.
type Step struct {
	Name string
	// Bound is the deadline of the context that Func gets. A Func that is
	// still running [Slack] later is left behind and reported as [ErrOverran].
	Bound time.Duration
	// Settles marks the step that charges what is owed. Hurrying ends every
	// step before it at once; when it fails, the exit code is 1.
	Settles bool
	// Func does the step. It should use its whole bound if it needs it, and
	// end soon after its context does.
	Func func(context.Context) error
}

// Sequence is a shutdown as data: its steps in order.
type Sequence []Step

// Result is what became of one step.
type Result struct {
	Name    string
	Took    time.Duration
	Settles bool
	Err     error // nil, or a [*StepError]
}

// Report is what became of a shutdown, step by step.
type Report []Result

// Err is the errors of all steps, joined; nil when every step ended well.
func (r Report) Err() error {
	var faults []error
	for _, res := range r {
		faults = append(faults, res.Err)
	}
	return errors.Join(faults...)
}

// ExitCode is 1 when the settling step failed, so that units stayed unsettled,
// and 0 otherwise: a client that had to be cut off lost nothing that was
// charged.
func (r Report) ExitCode() int {
	for _, res := range r {
		if res.Settles && res.Err != nil {
			return 1
		}
	}
	return 0
}

// Run runs every step in order, each within its own bound, whatever became of
// the ones before. Closing hurry (a second signal) ends the steps before the
// settling one at once; it may be nil. ctx carries values only: a shutdown is
// bounded by its steps and nothing else. Run blocks until the last step ended.
func (s Sequence) Run(ctx context.Context, hurry <-chan struct{}, log *slog.Logger) Report {
	base := context.WithoutCancel(ctx)
	settling := s.settlingStep()
	report := make(Report, 0, len(s))
	for i, step := range s {
		cut := hurry
		if i >= settling {
			cut = nil
		}
		log.Info("shutdown step", "step", step.Name, "bound", step.Bound)
		res := step.run(base, cut)
		if res.Err != nil {
			log.Warn("shutdown step failed", "step", step.Name, "took", res.Took, "error", res.Err)
		}
		report = append(report, res)
	}
	return report
}

// settlingStep is the index of the step that settles; past the end when there
// is none, so that hurrying cuts everything.
func (s Sequence) settlingStep() int {
	for i, step := range s {
		if step.Settles {
			return i
		}
	}
	return len(s)
}

func (s Step) run(base context.Context, cut <-chan struct{}) Result {
	ctx, cancel := context.WithTimeout(base, s.Bound)
	defer cancel()
	began := time.Now()
	done := make(chan error, 1) // buffered: a step left behind can still end
	go func() { done <- s.Func(ctx) }()

	err := await(ctx, cancel, cut, done)
	res := Result{Name: s.Name, Took: time.Since(began), Settles: s.Settles}
	if err != nil {
		res.Err = &StepError{Step: s.Name, Err: err}
	}
	return res
}

// await waits for done; once ctx ended, or cut made it end, no longer than
// [Slack].
func await(ctx context.Context, cancel context.CancelFunc, cut <-chan struct{}, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-cut:
		cancel()
	case <-ctx.Done():
	}
	late := time.NewTimer(Slack)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("%w and %v more", ErrOverran, Slack)
	}
}

// Notice is the Func of a step that only waits until its bound ends or
// somebody hurries: the node goes on serving meanwhile.
func Notice(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
