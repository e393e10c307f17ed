package daemon

import (
	"errors"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/kvstore"
)

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern, prefix string
		match, other    string
	}{
		{"f.v.account.acme", "f.v.account.", "f.v.account.acme", "f.v.account.acme2"},
		{"f.*.*.*", "f.", "f.v.total.x", "g.v.total.x"},
		{"f.*.account.acme", "f.", "f.v.account.acme", "f.v.subject.acme"},
		{"*.*.*.*", "", "a.b.c.d", "a.b.c"},
	} {
		tokens := strings.Split(c.pattern, ".")
		if got := literalPrefix(tokens); got != c.prefix {
			t.Errorf("%s: prefix %q, want %q", c.pattern, got, c.prefix)
		}
		if !matches(tokens, c.match) || matches(tokens, c.other) {
			t.Errorf("%s: must match %s and not %s", c.pattern, c.match, c.other)
		}
	}
}

func TestTranslate(t *testing.T) {
	t.Parallel()
	var conflict *admin.ConflictError
	if err := translate(&kvstore.PolicyConflict{Expected: 3, Current: 5}); !errors.As(err, &conflict) || conflict.Current != 5 {
		t.Errorf("conflict: %v", err)
	}
	for _, gone := range []error{kvstore.ErrPolicyNotFound, kvstore.ErrNoCounter} {
		if err := translate(gone); !errors.Is(err, admin.ErrNotFound) || !errors.Is(err, gone) {
			t.Errorf("%v became %v", gone, err)
		}
	}
	if err := translate(nil); err != nil {
		t.Errorf("nothing became %v", err)
	}
}
