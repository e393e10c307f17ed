package invocation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/headgate-io/headgate/ratelimit"
)

// errBody is a body that is no JSON object; errors around it say why.
var errBody = errors.New("the body must be one JSON object")

// readInvocation decodes the body of a check. It is stricter than
// [json.Unmarshal]: names are matched exactly, none may be unknown or given
// twice, and text that is not UTF-8 is refused instead of mended, because two
// mended identifiers could become one. null is the same as absent.
//
// The error is a [*ratelimit.FieldError], [*http.MaxBytesError] or wraps
// errBody.
func readInvocation(body io.Reader) (ratelimit.Invocation, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return ratelimit.Invocation{}, fmt.Errorf("read body: %w", err)
	}
	inv := ratelimit.Invocation{Cost: 1}
	dec := json.NewDecoder(bytes.NewReader(data))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return ratelimit.Invocation{}, errBody
	}
	seen := make(map[string]bool, 5)
	for dec.More() {
		name, raw, err := readMember(dec)
		if err != nil {
			return ratelimit.Invocation{}, err
		}
		if seen[name] {
			return ratelimit.Invocation{}, &ratelimit.FieldError{Field: name, Reason: "is given twice"}
		}
		seen[name] = true
		if err := setMember(&inv, name, raw); err != nil {
			return ratelimit.Invocation{}, err
		}
	}
	if _, err := dec.Token(); err != nil {
		return ratelimit.Invocation{}, errBody
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return ratelimit.Invocation{}, fmt.Errorf("%w and nothing after it", errBody)
	}
	return inv, nil
}

func readMember(dec *json.Decoder) (name string, raw json.RawMessage, err error) {
	token, err := dec.Token()
	if err != nil {
		return "", nil, errBody
	}
	name, ok := token.(string)
	if !ok {
		return "", nil, errBody
	}
	if err := dec.Decode(&raw); err != nil {
		return "", nil, errBody
	}
	return name, raw, nil
}

// setMember puts one member of the body into inv.
func setMember(inv *ratelimit.Invocation, name string, raw json.RawMessage) error {
	null := string(raw) == "null"
	var into *string
	switch name {
	case plainNames.account:
		into = &inv.Account
	case plainNames.function:
		into = &inv.Function
	case plainNames.version:
		into = &inv.Version
	case plainNames.subject:
		into = &inv.Subject
	case plainNames.cost:
		if null {
			return nil
		}
		var err error
		inv.Cost, err = parseCost(name, string(raw))
		return err
	default:
		return unknownMember(name)
	}
	if null {
		return nil
	}
	if !utf8.Valid(raw) {
		return &ratelimit.FieldError{Field: name, Reason: "must be valid UTF-8"}
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return &ratelimit.FieldError{Field: name, Reason: "must be a string"}
	}
	// Half of a surrogate pair decodes to the replacement character.
	if strings.ContainsRune(*into, utf8.RuneError) {
		return &ratelimit.FieldError{Field: name, Reason: "must be valid UTF-8"}
	}
	return nil
}

// unknownMember names a member that is not ours, as far as that is decent: the
// name comes from the caller and goes back to the caller only.
func unknownMember(name string) error {
	if len(name) > MaxIdentifierBytes || fault(name) != "" {
		name = "a field with an unprintable name"
	}
	return &ratelimit.FieldError{Field: name, Reason: "is not a field of a check"}
}

// parseCost reads a cost; its range is the gate's to check, but for what does
// not fit an int64.
func parseCost(field, text string) (int64, error) {
	cost, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil:
		return cost, nil
	case errors.Is(err, strconv.ErrRange):
		return 0, &ratelimit.FieldError{Field: field, Reason: "must be 0 to 2^53"}
	default:
		return 0, &ratelimit.FieldError{Field: field, Reason: "must be a whole number"}
	}
}

// headerNames are the header fields that carry an invocation to /v1/authorize.
var headerNames = names{
	account: "X-Headgate-Account", function: "X-Headgate-Function", version: "X-Headgate-Version",
	subject: "X-Headgate-Subject", cost: "X-Headgate-Cost",
}

// headerInvocation reads an invocation from header fields. A field given twice
// is refused: which of the two counts would depend on the proxy in front.
func headerInvocation(h http.Header) (ratelimit.Invocation, error) {
	inv := ratelimit.Invocation{Cost: 1}
	var cost string
	for _, f := range []struct {
		name string
		into *string
	}{
		{headerNames.account, &inv.Account}, {headerNames.function, &inv.Function},
		{headerNames.version, &inv.Version}, {headerNames.subject, &inv.Subject}, {headerNames.cost, &cost},
	} {
		values := h.Values(f.name)
		if len(values) > 1 {
			return ratelimit.Invocation{}, &ratelimit.FieldError{Field: f.name, Reason: "is given twice"}
		}
		if len(values) == 1 {
			*f.into = values[0]
		}
	}
	if cost == "" {
		return inv, nil
	}
	var err error
	inv.Cost, err = parseCost(headerNames.cost, cost)
	return inv, err
}
