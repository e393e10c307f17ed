package config

import (
	"errors"
	"fmt"
)

// ErrConfig: the configuration was refused; the error holds [*Fault] values.
var ErrConfig = errors.New("invalid configuration")

// Fault is one setting that was refused. It wraps [ErrConfig].
type Fault struct {
	Key    string // "drain.notice"
	Value  string // as it was written; secrets are not shown
	Reason string
	From   string // "environment HEADGATE_DRAIN_NOTICE"; empty when no one place is to blame
}

func (f *Fault) Error() string {
	text := f.Key
	if f.Value != "" {
		text += fmt.Sprintf(" = %q", f.Value)
	}
	if f.From != "" {
		text += " (" + f.From + ")"
	}
	return text + ": " + f.Reason
}

// Unwrap makes errors.Is(err, ErrConfig) true.
func (f *Fault) Unwrap() error { return ErrConfig }
