package kvstore

import (
	"fmt"
	"log/slog"
	"sync"
)

// serverLog is the embedded server's logger. Its notices are details to us;
// its traces, which would hold subjects, are never asked for.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
	fatal error // the first thing the server called fatal
}

func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats-server: " + fmt.Sprintf(format, v...))
}

func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn("nats-server: " + fmt.Sprintf(format, v...))
}

func (l *serverLog) Errorf(format string, v ...any) {
	l.log.Warn("nats-server: " + fmt.Sprintf(format, v...))
}

// Fatalf ends a stand-alone server's process. Ours goes on: the server is
// started anew.
func (l *serverLog) Fatalf(format string, v ...any) {
	err := fmt.Errorf(format, v...)
	l.mu.Lock()
	if l.fatal == nil {
		l.fatal = err
	}
	l.mu.Unlock()
	l.log.Error("nats-server failed", "error", err)
}

func (l *serverLog) Debugf(string, ...any) {}
func (l *serverLog) Tracef(string, ...any) {}

// failure is the first fatal error, or nil.
func (l *serverLog) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fatal
}
