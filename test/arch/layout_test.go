package arch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// rooms are the directories at the top of the tree.
var rooms = []string{"cmd", "helm", "invocation", "kvstore", "lifecycle", "ratelimit", "test"}

func TestTopOfTheTree(t *testing.T) {
	t.Parallel()
	ignored := ignoredNames(t)
	entries, err := os.ReadDir(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() && !strings.HasPrefix(name, ".") && !slices.Contains(rooms, name) && !slices.Contains(ignored, name) {
			t.Errorf("%s/ is not in the design's picture of the tree", name)
		}
	}
	for _, p := range packages(t) {
		first, _, _ := strings.Cut(p.name(), "/")
		if !slices.Contains(rooms, first) {
			t.Errorf("package %q stands outside the rooms", p.name())
		}
	}
}

// ignoredNames are the names in .gitignore: what a run leaves behind.
func ignoredNames(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, line := range strings.Fields(string(text)) {
		names = append(names, strings.Trim(line, "/"))
	}
	return names
}

// A package is named for what it provides.
func TestNoPackageIsNamedForNothing(t *testing.T) {
	t.Parallel()
	empty := []string{"util", "utils", "common", "types", "helpers", "misc", "shared", "pkg"}
	for _, p := range packages(t) {
		for _, word := range strings.Split(p.name(), "/") {
			if slices.Contains(empty, word) {
				t.Errorf("%s: %q says nothing", p.name(), word)
			}
		}
	}
}
