package lifecycle

import (
	"errors"
	"fmt"
)

// Errors of this package that callers may branch on.
var (
	// ErrMove: the phase does not lead there; the error is a [*MoveError].
	ErrMove = errors.New("illegal phase move")
	// ErrConfig: a setting was refused; the error holds [*ConfigError] values.
	ErrConfig = errors.New("invalid lifecycle configuration")
	// ErrOverran: a step did not return within its bound and the slack after
	// it, and was left behind.
	ErrOverran = errors.New("did not end within its bound")
	// ErrNotProbed: a check has not answered for the first time yet.
	ErrNotProbed = errors.New("not probed yet")
)

// MoveError is a move that the phase table does not hold. It wraps [ErrMove].
type MoveError struct{ From, To Phase }

func (e *MoveError) Error() string {
	return fmt.Sprintf("illegal phase move from %s to %s", e.From, e.To)
}

// Unwrap makes errors.Is(err, ErrMove) true.
func (e *MoveError) Unwrap() error { return ErrMove }

// ConfigError is one rejected setting. It wraps [ErrConfig].
type ConfigError struct {
	Field  string // as in the configuration file: "drain.notice"
	Value  any
	Reason string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.Field, e.Value, e.Reason)
}

// Unwrap makes errors.Is(err, ErrConfig) true.
func (e *ConfigError) Unwrap() error { return ErrConfig }

// StepError is a shutdown step that failed. It wraps the step's own error.
type StepError struct {
	Step string
	Err  error
}

func (e *StepError) Error() string { return e.Step + ": " + e.Err.Error() }

// Unwrap returns the step's own error.
func (e *StepError) Unwrap() error { return e.Err }
