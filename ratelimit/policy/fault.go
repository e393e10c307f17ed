package policy

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrPolicy: a document holds no valid policy; the error is, or joins, a
// [*Fault].
var ErrPolicy = errors.New("invalid policy")

// Fault is one thing wrong in one document. It wraps [ErrPolicy].
type Fault struct {
	// Place is the file or the key the document came from; empty when there
	// is only one.
	Place string
	// Path leads to the value: "account.overrides.acme", after "[2]." when the
	// text holds several documents and this is the second. It may name an
	// account: for operators, never for logs. Empty: the text as a whole.
	Path string
	// Value is what was refused, as it was written. It may name an account.
	Value string
	// Reason is what is wrong with it, for people: "is required".
	Reason string
	// Line counts from 1; 0 when it is not known.
	Line int

	safe    string // Path with accounts replaced by their places
	private bool   // Value may name an account
}

// maxQuoted is how much of a refused value an error repeats, in bytes.
const maxQuoted = 64

// Error tells the fault without naming an account, so that it may be logged.
func (f *Fault) Error() string {
	var b strings.Builder
	writePlace(&b, f.Place, f.Line)
	if f.safe != "" {
		b.WriteString(f.safe + ": ")
	}
	if f.Value != "" && !f.private {
		b.WriteString(quoted(f.Value) + " ")
	}
	b.WriteString(f.Reason)
	return b.String()
}

// Unwrap makes errors.Is(err, ErrPolicy) true.
func (f *Fault) Unwrap() error { return ErrPolicy }

// Warning is a limit that is valid and does nothing, or not what it seems to.
type Warning struct {
	Place  string // as in [Fault]
	Path   string // as in [Fault]
	Reason string // for people: "never binds: at most 10 pass in 1h under 10-H"
	Line   int    // as in [Fault]

	safe string
}

// String tells the warning without naming an account, so that it may be logged.
func (w Warning) String() string {
	var b strings.Builder
	writePlace(&b, w.Place, w.Line)
	if w.safe != "" {
		b.WriteString(w.safe + ": ")
	}
	b.WriteString(w.Reason)
	return b.String()
}

func writePlace(b *strings.Builder, place string, line int) {
	if place != "" {
		b.WriteString(place + ": ")
	}
	if line > 0 {
		fmt.Fprintf(b, "line %d: ", line)
	}
}

func quoted(value string) string {
	if len(value) > maxQuoted {
		return fmt.Sprintf("%q...", value[:maxQuoted])
	}
	return fmt.Sprintf("%q", value)
}

// Faults lists every [*Fault] that err is or joins, in order.
func Faults(err error) []*Fault {
	var fault *Fault
	switch joined := err.(type) { //nolint:errorlint // walks the tree itself
	case nil:
		return nil
	case *Fault:
		return []*Fault{joined}
	case interface{ Unwrap() []error }:
		var all []*Fault
		for _, e := range joined.Unwrap() {
			all = append(all, Faults(e)...)
		}
		return all
	default:
		if errors.As(err, &fault) {
			return Faults(errors.Unwrap(err))
		}
		return nil
	}
}

// joinFaults is nil without faults.
func joinFaults(faults []*Fault) error {
	slices.SortStableFunc(faults, func(a, b *Fault) int {
		return cmp.Or(cmp.Compare(a.Place, b.Place), cmp.Compare(a.Line, b.Line))
	})
	all := make([]error, len(faults))
	for i, f := range faults {
		all[i] = f
	}
	return errors.Join(all...)
}
