package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"go.uber.org/dig"
	"go.uber.org/fx"

	"github.com/headgate-io/headgate/cmd/headgate/internal/config"
	"github.com/headgate-io/headgate/lifecycle"
	"github.com/headgate-io/headgate/ratelimit"
)

// exitFailed is the exit code of a node that could not start.
const exitFailed = 2

// Run runs a node until the first of signals, or until ctx ends, and lets it
// leave; a second signal hurries that. It returns the exit code: 0 when
// everything was settled, 1 when something was not, 2 with an error when the
// node could not start.
func Run(ctx context.Context, cfg config.Config, build Build, signals <-chan os.Signal, log *slog.Logger) (int, error) {
	var p parts
	app := fx.New(Options(cfg, build, log), fx.Invoke(func(all parts) { p = all }))
	if err := app.Err(); err != nil {
		return exitFailed, fmt.Errorf("start: %w", dig.RootCause(err))
	}
	starting, cancel := context.WithTimeout(ctx, app.StartTimeout())
	defer cancel()
	if err := app.Start(starting); err != nil {
		return exitFailed, fmt.Errorf("start: %w", err)
	}
	log.Info("headgate started", "version", build.Version, "node", cfg.Node.Name)
	select {
	case sig := <-signals:
		log.Info("leaving", "signal", sig.String())
	case <-ctx.Done():
		log.Info("leaving", "reason", context.Cause(ctx).Error())
	}
	return leave(ctx, app, p.shutdown(cfg.LifeConfig()), signals, log), nil
}

// leave runs the shutdown, then the hooks of the application.
func leave(ctx context.Context, app *fx.App, steps lifecycle.Sequence, signals <-chan os.Signal, log *slog.Logger) int {
	hurry, stopListening := onNext(signals, log)
	report := steps.Run(ctx, hurry, log)
	stopListening()

	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.StopTimeout())
	defer cancel()
	if err := app.Stop(bounded); err != nil {
		log.Warn("stopping the rest failed", "error", err)
	}
	var left *ratelimit.UnsettledError
	if errors.As(report.Err(), &left) {
		log.Error("stopped with units unsettled", "units", left.Units, "counters", left.Counters)
	} else {
		log.Info("stopped", "code", report.ExitCode())
	}
	return report.ExitCode()
}

// onNext closes the channel it returns at the next signal. stop ends the
// waiting.
func onNext(signals <-chan os.Signal, log *slog.Logger) (next <-chan struct{}, stop func()) {
	hurry, done := make(chan struct{}), make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case sig := <-signals:
			log.Warn("leaving at once: only settlement is waited for", "signal", sig.String())
			close(hurry)
		case <-done:
		}
	})
	return hurry, func() { close(done); waiting.Wait() }
}
