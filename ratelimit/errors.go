package ratelimit

import (
	"errors"
	"fmt"
)

// Errors that a [Store] returns and callers of [Limiter.Decide] may meet.
var (
	// ErrUnavailable: the store did not take the exchange; nothing was applied.
	ErrUnavailable = errors.New("store unavailable")
	// ErrUnknown: the exchange was sent and its outcome is not known. It may
	// have been applied, or may still be.
	ErrUnknown = errors.New("outcome unknown")
	// ErrForgotten: a repeated exchange came too late to tell whether it was
	// applied, and was not applied now. It is an ErrUnknown that asking again
	// does not settle.
	ErrForgotten = fmt.Errorf("%w: too long ago to tell", ErrUnknown)
	// ErrNewerFormat: the record was written by a newer release; this one does
	// not touch it. It is treated as the store being away.
	ErrNewerFormat = errors.New("record has a newer format")
	// ErrInvalid: the invocation cannot be decided as it is; the error is a
	// [*FieldError].
	ErrInvalid = errors.New("invalid invocation")
	// ErrStopped: the limiter was stopped.
	ErrStopped = errors.New("limiter is stopped")
)

// ConfigError is one rejected setting of a [Config].
type ConfigError struct {
	Field string // "SyncInterval"
	Value any    // as it was set
	Why   string // "must be 20ms to 1m0s"
}

func (e *ConfigError) Error() string { return fmt.Sprintf("%s=%v: %s", e.Field, e.Value, e.Why) }

// FieldError is one field of an invocation that was refused. It wraps
// [ErrInvalid]. It never holds the value: values may be personal data.
type FieldError struct {
	Field  string // as on the wire of the caller: "account", "function", "version", "subject", "cost"
	Reason string // what is wrong with it, for people: "is required"
}

func (e *FieldError) Error() string { return fmt.Sprintf("%s: %s", e.Field, e.Reason) }

// Unwrap makes errors.Is(err, ErrInvalid) true.
func (e *FieldError) Unwrap() error { return ErrInvalid }
