package kvstore

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"
)

// Bounds of what the embedded server says again and again: a member that is
// gone is dialled several times a second for as long as it is away.
const (
	// sayAgainAfter is how long a repeated complaint is left out; it is then
	// told with how often it was.
	sayAgainAfter = time.Minute
	// maxComplaints bounds those remembered.
	maxComplaints = 256
)

// attemptCount is what alone differs between complaints about one fault.
var attemptCount = regexp.MustCompile(`\(attempt \d+\)`)

// serverLog is the embedded server's logger. Its notices are details to us;
// its traces, which would hold subjects, are never asked for.
type serverLog struct {
	log *slog.Logger

	mu    sync.Mutex
	fatal error                 // the first thing the server called fatal
	said  map[string]*complaint // by text without its count of attempts
}

// complaint is what was told, and what was left out since.
type complaint struct {
	told    time.Time
	leftOut int
}

func (l *serverLog) Noticef(format string, v ...any) {
	l.log.Debug("nats-server: " + fmt.Sprintf(format, v...))
}

func (l *serverLog) Warnf(format string, v ...any) { l.complain(format, v...) }

func (l *serverLog) Errorf(format string, v ...any) { l.complain(format, v...) }

// complain warns, once a minute for each fault; the rest are details.
func (l *serverLog) complain(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	level, attrs := slog.LevelWarn, []slog.Attr(nil)
	switch again, leftOut := l.repeated(attemptCount.ReplaceAllString(text, "")); {
	case again:
		level = slog.LevelDebug
	case leftOut > 0:
		attrs = append(attrs, slog.Int("leftOut", leftOut))
	}
	l.log.LogAttrs(context.Background(), level, "nats-server: "+text, attrs...)
}

// repeated reports whether a complaint was told less than a minute ago, and if
// not, how often it was left out since.
func (l *serverLog) repeated(text string) (again bool, leftOut int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c, known := l.said[text]
	if known && time.Since(c.told) < sayAgainAfter {
		c.leftOut++
		return true, 0
	}
	if known {
		leftOut = c.leftOut
	} else if l.said == nil || len(l.said) >= maxComplaints {
		l.said = make(map[string]*complaint)
	}
	l.said[text] = &complaint{told: time.Now()}
	return false, leftOut
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
