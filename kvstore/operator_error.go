package kvstore

import (
	"errors"
	"fmt"
	"strings"

	"github.com/headgate-io/headgate/ratelimit"
)

// ResetError is a counter that was not reset. It wraps
// [ratelimit.ErrUnavailable] when nothing was forgotten, and
// [ratelimit.ErrUnknown] when it may have been.
type ResetError struct {
	Silent  []string // nodes that are there and did not answer
	Refused []string // nodes that cannot settle what they owe
	Err     error
}

func (e *ResetError) Error() string {
	var b strings.Builder
	b.WriteString("reset counter")
	if n := len(e.Silent); n > 0 {
		fmt.Fprintf(&b, " (%d did not answer: %s)", n, strings.Join(e.Silent, ", "))
	}
	return fmt.Sprintf("%s: %v", &b, e.Err)
}

// Unwrap keeps the cause.
func (e *ResetError) Unwrap() error { return e.Err }

// refusal is a node that says that it cannot do what it was asked.
type refusal struct{ node, why string }

func (r *refusal) Error() string { return fmt.Sprintf("node %s: %s", r.node, r.why) }

func (r *refusal) Unwrap() error { return ratelimit.ErrUnavailable }

// refusing names the nodes whose refusals an error joins, as [Operator.ask] does.
func refusing(err error) []string {
	var nodes []string
	joined, _ := err.(interface{ Unwrap() []error })
	if joined == nil {
		var r *refusal
		if errors.As(err, &r) {
			nodes = append(nodes, r.node)
		}
		return nodes
	}
	for _, e := range joined.Unwrap() {
		nodes = append(nodes, refusing(e)...)
	}
	return nodes
}
