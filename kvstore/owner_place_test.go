package kvstore

import (
	"fmt"
	"slices"
	"testing"

	"github.com/headgate-io/headgate/ratelimit"
)

// TestOwnershipMovesLittle: a node that leaves moves only its own counters.
func TestOwnershipMovesLittle(t *testing.T) {
	list := newRoster("a", "b", "c", "d")
	p := &places{nodes: list}
	before := make(map[ratelimit.Key]string)
	share := make(map[string]int)
	for i := range 4000 {
		key := ratelimit.Key(fmt.Sprintf("f.v.account.%d", i))
		before[key] = p.owner(key)
		share[before[key]]++
	}
	for node, n := range share {
		if n < 800 || n > 1200 {
			t.Errorf("%s owns %d of 4000 counters", node, n)
		}
	}
	list.set("a", "b", "d")
	for key, owner := range before {
		if now := p.owner(key); owner != "c" && now != owner {
			t.Fatalf("a counter of %s moved to %s when c left", owner, now)
		}
	}
}

// TestDeputyIsNextInLine: the deputy is who owns the counter when the owner is
// lost.
func TestDeputyIsNextInLine(t *testing.T) {
	list := newRoster("a", "b", "c", "d")
	p := &places{nodes: list}
	const key = ratelimit.Key("f.v.account.1")
	line := []string{p.owner(key)}
	for len(line) < 4 {
		list.set(without(line)...)
		line = append(line, p.owner(key))
	}
	for _, c := range []struct {
		name   string
		live   []string
		silent string
		owner  string
		want   string
	}{
		{"all live", line, "", line[0], line[1]},
		{"the owner is silent by now", line, line[0], line[0], line[1]},
		{"the deputy is silent", line, line[1], line[0], line[2]},
		{"the deputy is gone", []string{line[0], line[2], line[3]}, "", line[0], line[2]},
		{"the owner is gone", line[1:], "", line[0], line[1]},
		{"who was asked is the owner no longer", line, "", line[2], line[0]},
		{"nobody else lives", line[:1], "", line[0], ""},
		{"nobody lives", nil, "", line[0], ""},
	} {
		list.set(c.live...)
		if c.silent != "" {
			p.silent(c.silent)
		}
		if got := p.deputy(key, c.owner); got != c.want {
			t.Errorf("%s: the deputy is %q, want %q (in line: %v)", c.name, got, c.want, line)
		}
		p.spoke(c.silent)
	}
}

// without are the nodes a to d but for some.
func without(some []string) []string {
	return slices.DeleteFunc([]string{"a", "b", "c", "d"}, func(n string) bool { return slices.Contains(some, n) })
}
