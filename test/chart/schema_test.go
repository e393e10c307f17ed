package chart

import (
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var usedValue = regexp.MustCompile(`\.Values((?:\.[A-Za-z0-9]+)+)`)

// Every value that a template uses is in the schema and in values.yaml.
// [TestEachValueChangesWhatItIsFor] says the reverse: every value of the schema
// is used.
func TestUsedValuesAreInTheSchema(t *testing.T) {
	t.Parallel()
	var defaults map[string]any
	if err := yaml.UnmarshalStrict([]byte(readFile(t, filepath.Join(chartDir, "values.yaml"))), &defaults); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, leaf := range leaves(t) {
		for path := leaf.path; path != ""; path = parent(path) {
			known[path] = true
		}
	}
	used := map[string]bool{}
	for _, text := range templates(t) {
		for _, match := range usedValue.FindAllStringSubmatch(text, -1) {
			used[strings.TrimPrefix(match[1], ".")] = true
		}
	}
	if len(used) < 50 {
		t.Errorf("found only %d used values", len(used))
	}
	for path := range used {
		if !known[path] {
			t.Errorf("a template uses %s, which the schema does not know", path)
		}
		if !reaches(defaults, strings.Split(path, ".")) {
			t.Errorf("a template uses %s, which values.yaml does not have", path)
		}
	}
}

func parent(path string) string {
	return path[:max(0, strings.LastIndex(path, "."))]
}

// reaches reports whether there is something at a path.
func reaches(in map[string]any, path []string) bool {
	value, found := in[path[0]]
	if !found || len(path) == 1 {
		return found
	}
	section, is := value.(map[string]any)
	return is && reaches(section, path[1:])
}

// templates are the texts of all templates, by path.
func templates(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	err := filepath.WalkDir(filepath.Join(chartDir, "templates"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			texts[path] = readFile(t, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return texts
}

// values.yaml and the schema name the same values.
func TestValuesAndSchemaNameTheSame(t *testing.T) {
	t.Parallel()
	documented := map[string]bool{}
	for _, v := range valuesOf(t) {
		documented[v.path] = true
	}
	for _, leaf := range leaves(t) {
		if !documented[leaf.path] && !strings.HasPrefix(leaf.path, "config.") {
			t.Errorf("values.yaml does not have %s", leaf.path)
		}
		delete(documented, leaf.path)
	}
	for _, path := range slices.Sorted(maps.Keys(documented)) {
		if path != "config" {
			t.Errorf("the schema does not have %s", path)
		}
	}
}

// The schema is closed: whatever is an object of the chart's own takes no other
// values, and no default can be taken away by null.
func TestSchemaIsClosed(t *testing.T) {
	t.Parallel()
	var walk func(path string, node map[string]any)
	walk = func(path string, node map[string]any) {
		properties, _ := node["properties"].(map[string]any)
		if len(properties) == 0 || strings.HasPrefix(path, "/definitions/policy/then") || strings.Contains(path, "/if") || strings.Contains(path, "/anyOf") || strings.Contains(path, "/then") {
			return
		}
		if node["additionalProperties"] != false {
			t.Errorf("%s takes any value", path)
		}
		for name, inner := range properties {
			walk(path+"/"+name, inner.(map[string]any))
		}
	}
	schema := readSchema(t)
	walk("", schema)
	for name, definition := range schema["definitions"].(map[string]any) {
		walk("/definitions/"+name, definition.(map[string]any))
	}
	required := schema["required"].([]any)
	for name := range schema["properties"].(map[string]any) {
		if name != "global" && !slices.Contains(required, any(name)) {
			t.Errorf("%s can be taken away by null", name)
		}
	}
}
