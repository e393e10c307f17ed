package main

import (
	"log/slog"
	"os"

	"golang.org/x/term"

	"github.com/headgate-io/headgate/cmd/headgate/internal/config"
)

// newLogger logs to w: text where a person reads it, JSON where a program
// does. The configuration was validated.
func newLogger(cfg config.Log, w *os.File) *slog.Logger {
	var level slog.Level
	_ = level.UnmarshalText([]byte(cfg.Level)) // Load refused what is no level
	opts := &slog.HandlerOptions{Level: level, ReplaceAttr: readableSpan}
	if cfg.Format == "text" || (cfg.Format == "auto" && term.IsTerminal(int(w.Fd()))) {
		return slog.New(slog.NewTextHandler(w, opts))
	}
	return slog.New(slog.NewJSONHandler(w, opts))
}

// readableSpan writes a span as people do; JSON would show bare nanoseconds.
func readableSpan(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
