package cluster

import (
	"fmt"
	"os"
	"strings"
)

// logbook is the file that a process writes its log to, over all its lives.
type logbook struct{ file *os.File }

func newLogbook(path string) (*logbook, error) {
	// Several lives write to it, one after the other.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	return &logbook{file: f}, nil
}

// text is all that was written.
func (l *logbook) text() (string, error) {
	text, err := os.ReadFile(l.file.Name())
	return string(text), err
}

// tail is the last lines, at most limit bytes of them.
func (l *logbook) tail(limit int) string {
	text, err := l.text()
	if err != nil {
		return err.Error()
	}
	text = text[len(text)-min(len(text), limit):]
	_, whole, _ := strings.Cut(text, "\n")
	return whole
}

// last is the last line that holds what.
func (l *logbook) last(what string) (line string, found bool, err error) {
	text, err := l.text()
	if err != nil {
		return "", false, err
	}
	at := strings.LastIndex(text, what)
	if at < 0 {
		return "", false, nil
	}
	start := strings.LastIndex(text[:at], "\n") + 1
	line, _, _ = strings.Cut(text[start:], "\n")
	return line, true, nil
}

func (l *logbook) close() error { return l.file.Close() }
