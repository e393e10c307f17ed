package invocation

import (
	"errors"
	"fmt"
)

// Errors of this package that callers may branch on.
var (
	// ErrNotReady: the gate was not opened yet; ask again, or ask another node.
	ErrNotReady = errors.New("not ready")
	// ErrClosed: the gate was closed; ask another node.
	ErrClosed = errors.New("gate is closed")
	// ErrConfig: a setting was refused; the error holds [*ConfigError] values.
	ErrConfig = errors.New("invalid invocation configuration")
	// ErrListen: an address could not be listened on. It wraps the cause.
	ErrListen = errors.New("cannot listen")
	// ErrForced: the grace of a stop ran out, and what was still running was
	// cut off.
	ErrForced = errors.New("stopped by force")
)

// ConfigError is one rejected setting. It wraps [ErrConfig].
type ConfigError struct {
	Field  string // as in the configuration file: "grpc.listen"
	Value  any
	Reason string
}

func (e *ConfigError) Error() string { return fmt.Sprintf("%s: %v: %s", e.Field, e.Value, e.Reason) }

// Unwrap makes errors.Is(err, ErrConfig) true.
func (e *ConfigError) Unwrap() error { return ErrConfig }
