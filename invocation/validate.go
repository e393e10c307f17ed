package invocation

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// MaxIdentifierBytes bounds an account, function, version or subject.
const MaxIdentifierBytes = 256

// names is what the fields of an invocation are called on a caller's wire.
type names struct{ account, function, version, subject, cost string }

// plainNames are those of [ratelimit.Invocation] and of the JSON API.
var plainNames = names{"account", "function", "version", "subject", "cost"}

// validate refuses what no policy could make decidable.
func validate(inv ratelimit.Invocation) error {
	if inv.Function == "" {
		return required(plainNames.function)
	}
	switch {
	case !clean(inv.Account):
		return &ratelimit.FieldError{Field: plainNames.account, Reason: fault(inv.Account)}
	case !clean(inv.Function):
		return &ratelimit.FieldError{Field: plainNames.function, Reason: fault(inv.Function)}
	case !clean(inv.Version):
		return &ratelimit.FieldError{Field: plainNames.version, Reason: fault(inv.Version)}
	case !clean(inv.Subject):
		return &ratelimit.FieldError{Field: plainNames.subject, Reason: fault(inv.Subject)}
	case inv.Cost < 0:
		return &ratelimit.FieldError{Field: plainNames.cost, Reason: "must not be negative"}
	case inv.Cost > counter.MaxUnits:
		return &ratelimit.FieldError{Field: plainNames.cost, Reason: "must be at most 2^53"}
	}
	return nil
}

func required(field string) error {
	return &ratelimit.FieldError{Field: field, Reason: "is required"}
}

// clean is the fast way to say that fault has nothing to say: printable ASCII
// of a fitting length, which nearly every identifier is.
func clean(id string) bool {
	if len(id) > MaxIdentifierBytes {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c < ' ' || c >= 0x7f {
			return fault(id) == ""
		}
	}
	return true
}

// fault is what is wrong with an identifier, for people; empty when nothing is.
func fault(id string) string {
	switch {
	case len(id) > MaxIdentifierBytes:
		return "must be at most 256 bytes"
	case !utf8.ValidString(id):
		return "must be valid UTF-8"
	case strings.ContainsFunc(id, unicode.IsControl):
		return "must not hold control characters"
	default:
		return ""
	}
}

// rename puts a field's error into the words of the caller's wire.
func (n names) rename(e *ratelimit.FieldError) *ratelimit.FieldError {
	wire := map[string]string{
		plainNames.account: n.account, plainNames.function: n.function, plainNames.version: n.version,
		plainNames.subject: n.subject, plainNames.cost: n.cost,
	}[e.Field]
	if wire == "" {
		wire = e.Field
	}
	return &ratelimit.FieldError{Field: wire, Reason: e.Reason}
}
