package chart

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/headgate-io/headgate/test/cluster"
)

// programKeys are the keys of the program's configuration file, with their
// defaults.
func programKeys(t *testing.T) map[string]any {
	t.Helper()
	cmd := exec.Command(cluster.Binary(t), "serve", "--print-config")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var keys map[string]any
	if err := yaml.Unmarshal(out, &keys); err != nil {
		t.Fatal(err)
	}
	return flat("", keys)
}

var ownKeysPattern = regexp.MustCompile(`(?s)define "headgate.ownKeys" -}}\n(.*?)\{\{- end`)

// ownKeys are the keys that the chart decides.
func ownKeys(t *testing.T) []string {
	t.Helper()
	found := ownKeysPattern.FindStringSubmatch(readFile(t, filepath.Join(chartDir, "templates", "_config.tpl")))
	if found == nil {
		t.Fatal("no headgate.ownKeys")
	}
	var keys []string
	if err := yaml.Unmarshal([]byte(found[1]), &keys); err != nil {
		t.Fatal(err)
	}
	return keys
}

// Every key of the program is either decided by the chart or can be set under
// config, and the schema of config is that of the program: with -update it is
// written from what the program says of itself.
func TestConfigIsEveryOtherKey(t *testing.T) {
	t.Parallel()
	keys := programKeys(t)
	for _, own := range ownKeys(t) {
		if _, known := keys[own]; !known {
			t.Errorf("the chart decides %s, which the program does not know", own)
		}
		delete(keys, own)
	}
	want := map[string]any{"additionalProperties": false, "type": "object", "properties": map[string]any{}}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		addKey(want, strings.Split(key, "."), schemaOf(keys[key]))
	}
	path := filepath.Join(chartDir, "values.schema.json")
	schema := readSchema(t)
	schema["properties"].(map[string]any)["config"] = want
	wrote := encodeSchema(t, schema)
	if *update {
		if err := os.WriteFile(path, wrote, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have := readFile(t, path); have != string(wrote) {
		t.Error("values.schema.json does not have the program's keys under config, or is not as -update writes it; run this test with -update")
	}
}

// addKey puts the schema of a key into that of its section.
func addKey(section map[string]any, path []string, schema map[string]any) {
	properties := section["properties"].(map[string]any)
	if len(path) == 1 {
		properties[path[0]] = schema
		return
	}
	inner, found := properties[path[0]].(map[string]any)
	if !found {
		inner = map[string]any{"additionalProperties": false, "type": "object", "properties": map[string]any{}}
		properties[path[0]] = inner
	}
	addKey(inner, path[1:], schema)
}

var durationPattern = regexp.MustCompile(`^([0-9.]+(ms|s|m|h))+$`)

// schemaOf a key, by the kind of its default.
func schemaOf(value any) map[string]any {
	switch v := value.(type) {
	case bool:
		return map[string]any{"type": "boolean"}
	case float64:
		return map[string]any{"type": "integer"}
	case []any:
		return map[string]any{"type": "array", "items": map[string]any{"type": "string"}}
	case string:
		if durationPattern.MatchString(v) {
			return map[string]any{"type": "string", "pattern": "^([0-9.]+(ms|s|m|h))+$"}
		}
	}
	return map[string]any{"type": "string"}
}

func readSchema(t *testing.T) map[string]any {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal([]byte(readFile(t, filepath.Join(chartDir, "values.schema.json"))), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

func encodeSchema(t *testing.T, schema map[string]any) []byte {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(schema); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A key of the chart's own is refused under config, by its name.
func TestConfigRefusesTheChartsOwnKeys(t *testing.T) {
	t.Parallel()
	for _, key := range ownKeys(t) {
		path := strings.Split(key, ".")
		values := path[len(path)-1] + ": x"
		for _, section := range slices.Backward(path[:len(path)-1]) {
			values = section + ": {" + values + "}"
		}
		why := with("insecure: true", "config: {"+values+"}").refused(t)
		if !strings.Contains(why, "'/config") || !strings.Contains(why, path[0]) {
			t.Errorf("config.%s is refused without its name: %s", key, why)
		}
	}
}
