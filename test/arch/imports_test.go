package arch

import (
	"go/parser"
	"slices"
	"strings"
	"testing"
)

// mayImport says for each part of the house which parts of it it may import,
// itself always. The first part that a package is under counts.
var mayImport = []struct {
	part string
	may  []string
}{
	{"cmd", []string{"invocation", "kvstore", "lifecycle", "ratelimit"}},
	{"test", []string{"cmd", "invocation", "kvstore", "lifecycle", "ratelimit"}},
	{"ratelimit/counter", nil},
	{"ratelimit/storetest", []string{"ratelimit"}},
	{"ratelimit/policy", []string{"ratelimit"}},
	{"ratelimit", []string{"ratelimit/counter"}},
	{"invocation", []string{"ratelimit"}},
	{"kvstore", []string{"ratelimit"}},
	{"lifecycle", nil},
}

// allowed reports whether a package may import another one of the module.
func allowed(from, to string) bool {
	for _, rule := range mayImport {
		if under(from, rule.part) {
			return from == to || under(to, rule.part) && rule.part != "ratelimit" ||
				slices.ContainsFunc(rule.may, func(part string) bool { return under(to, part) })
		}
	}
	return false
}

func TestImportsFollowTheDesign(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		for _, path := range p.Imports {
			if ours(path) && !allowed(p.name(), inside(path)) {
				t.Errorf("%s imports %s, which the design does not allow", p.name(), inside(path))
			}
			if under(inside(path), "ratelimit/storetest") && !under(p.name(), "test") {
				t.Errorf("%s imports storetest outside a test", p.name())
			}
		}
		for _, path := range p.testImports() {
			// A test may bring what its package must not: a store to test with, and
			// a port for its server.
			brought := under(inside(path), "ratelimit") || under(inside(path), "test/ports")
			if ours(path) && !allowed(p.name(), inside(path)) && !brought {
				t.Errorf("a test of %s imports %s, which the design does not allow", p.name(), inside(path))
			}
		}
	}
}

// The three neighbours each declare the small interface they need.
func TestNeighboursDoNotImportEachOther(t *testing.T) {
	t.Parallel()
	neighbours := []string{"invocation", "kvstore", "lifecycle"}
	for _, p := range packages(t) {
		for _, from := range neighbours {
			for _, to := range neighbours {
				if from == to || !under(p.name(), from) {
					continue
				}
				for _, path := range slices.Concat(p.Imports, p.testImports()) {
					if ours(path) && under(inside(path), to) {
						t.Errorf("%s imports %s", p.name(), inside(path))
					}
				}
			}
		}
	}
}

func TestCounterIsStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if !under(p.name(), "ratelimit/counter") {
			continue
		}
		for _, path := range p.Imports {
			if !standard(path) || path == "context" || path == "sync" || strings.HasPrefix(path, "log") {
				t.Errorf("%s imports %s: it is arithmetic, with no clock, context, lock or log", p.name(), path)
			}
		}
	}
}

func TestNATSStaysInItsHouse(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if under(p.name(), "kvstore") || under(p.name(), "test") {
			continue
		}
		for _, path := range slices.Concat(p.Imports, p.testImports()) {
			if strings.HasPrefix(path, "github.com/nats-io/") {
				t.Errorf("%s imports %s; NATS belongs to kvstore and test", p.name(), path)
			}
		}
	}
}

// Every package works without fx; fx is a way to wire it.
func TestFxStaysInModuleFiles(t *testing.T) {
	t.Parallel()
	for _, p := range packages(t) {
		if under(p.name(), "cmd") || under(p.name(), "test") {
			continue
		}
		_, files := p.parse(t, slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles), parser.ImportsOnly)
		for name, file := range files {
			if name == "module.go" || name == "module_test.go" {
				continue
			}
			for _, spec := range file.Imports {
				if strings.HasPrefix(strings.Trim(spec.Path.Value, `"`), "go.uber.org/fx") {
					t.Errorf("%s/%s imports fx; only module.go may", p.name(), name)
				}
			}
		}
	}
}

// TestRulesBite: a rule that allows everything would pass all of the above.
func TestRulesBite(t *testing.T) {
	t.Parallel()
	cases := []struct {
		from, to string
		want     bool
	}{
		{"cmd/headgate", "kvstore", true},
		{"invocation", "ratelimit", true},
		{"invocation/nvcfpb", "ratelimit/counter", true},
		{"invocation", "invocation/nvcfpb", true},
		{"kvstore", "ratelimit/counter", true},
		{"ratelimit", "ratelimit/counter", true},
		{"ratelimit/policy", "ratelimit", true},
		{"ratelimit", "ratelimit/policy", false},
		{"ratelimit", "kvstore", false},
		{"ratelimit/counter", "ratelimit", false},
		{"invocation", "kvstore", false},
		{"kvstore", "lifecycle", false},
		{"lifecycle", "ratelimit", false},
		{"lifecycle", "invocation", false},
		{"kvstore", "cmd/headgate", false},
		{"elsewhere", "ratelimit", false},
	}
	for _, c := range cases {
		if got := allowed(c.from, c.to); got != c.want {
			t.Errorf("%s imports %s: allowed %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
