package chart

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

// bases are releases from which a single value is changed, by name. None
// generates a secret unless it says so, for two renderings of it would differ.
var bases = map[string]string{
	"embedded":  "{insecure: true, embedded: {auth: {existingSecret: r}}, hash: {existingSecret: h}}",
	"generated": "{insecure: true}",
	"emptydir":  "{insecure: true, embedded: {auth: {existingSecret: r}}, hash: {existingSecret: h}, persistence: {enabled: false}}",
	"member":    "{insecure: true, embedded: {auth: {existingSecret: r}, tls: {existingSecret: t}}, hash: {existingSecret: h}}",
	"beside":    "{insecure: true, nats: {url: 'nats://n'}, hash: {existingSecret: h}}",
	"user":      "{insecure: true, nats: {url: 'nats://n', auth: {kind: user, existingSecret: s}}, hash: {existingSecret: h}}",
	"token":     "{insecure: true, nats: {url: 'nats://n', auth: {kind: token, existingSecret: s}}, hash: {existingSecret: h}}",
	"nkey":      "{insecure: true, nats: {url: 'nats://n', auth: {kind: nkey, existingSecret: s}}, hash: {existingSecret: h}}",
	"creds":     "{insecure: true, nats: {url: 'nats://n', auth: {kind: creds, existingSecret: s}}, hash: {existingSecret: h}}",
	"tls":       "{insecure: true, nats: {url: 'tls://n', tls: {existingSecret: s, certKey: a, keyKey: b}}, hash: {existingSecret: h}}",
	"scaled":    "{insecure: true, nats: {url: 'nats://n'}, hash: {existingSecret: h}, autoscaling: {enabled: true, targetMemoryUtilizationPercentage: 50}}",
	"nvcftoken": "{insecure: true, nats: {url: 'nats://n'}, hash: {existingSecret: h}, nvcf: {address: 'a:443', token: {existingSecret: t}, tls: {existingSecret: c}}}",
	"nvcfoauth": "{insecure: true, nats: {url: 'nats://n'}, hash: {existingSecret: h}, nvcf: {address: 'a:443', oauth: {tokenURL: 'https://o', clientID: c, existingSecret: o}}}",
	"slow":      "{insecure: true, nats: {url: 'nats://n'}, hash: {existingSecret: h}, drain: {notice: 10s}, terminationGracePeriodSeconds: 60, probes: {startup: {periodSeconds: 3}, ready: {periodSeconds: 3}}}",
	"scraped":   "{insecure: true, nats: {url: 'nats://n'}, hash: {existingSecret: h}, podMonitor: {enabled: true}, networkPolicy: {monitoring: [{podSelector: {}}]}}",
}

// change is one value of a base, what kinds of objects it may change, and a
// line that it brings (or, with a leading "-", takes away).
type change struct {
	base, path, value string
	kinds             string
	line              string
}

// values is the change as a file.
func (c change) values() string {
	values := c.value
	for _, step := range slices.Backward(strings.Split(c.path, ".")) {
		values = "{" + step + ": " + values + "}"
	}
	return values
}

// Each value changes what it is for, and nothing else. A value of the schema
// that no change is made of does nothing, or nobody knows what.
func TestEachValueChangesWhatItIsFor(t *testing.T) {
	t.Parallel()
	made := map[string]bool{"insecure": true}
	for _, c := range append(configChanges(t), changes...) {
		made[c.path] = true
		t.Run(c.base+"/"+c.path, func(t *testing.T) {
			t.Parallel()
			before, after := baseTexts(t, c.base), texts(with(bases[c.base], c.values()).render(t))
			if got := strings.Join(changedKinds(before, after), " "); got != c.kinds {
				t.Errorf("changes %q, want %q", got, c.kinds)
			}
			line, removed := strings.CutPrefix(c.line, "-")
			if removed {
				before, after = after, before
			}
			if has(before, line) || !has(after, line) {
				t.Errorf("the line %q is not what changes", c.line)
			}
		})
	}
	for _, leaf := range leaves(t) {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(made)), func(path string) bool {
			return path == leaf.path || strings.HasPrefix(path, leaf.path+".")
		}) {
			t.Errorf("nothing says what %s changes", leaf.path)
		}
	}
}

// configChanges set each key of config to something that is not its default.
func configChanges(t *testing.T) []change {
	t.Helper()
	var made []change
	for _, leaf := range leaves(t) {
		path, is := strings.CutPrefix(leaf.path, "config.")
		if !is {
			continue
		}
		value := "other"
		switch {
		case leaf.schema["type"] == "boolean":
			value = "true"
		case leaf.schema["type"] == "integer":
			value = "5000000" // which helm would write as 5e+06
		case leaf.schema["type"] == "array":
			value = "[file]"
		case leaf.schema["pattern"] != nil:
			value = "77ms"
		}
		line := path[strings.LastIndex(path, ".")+1:] + ": " + value
		if value == "[file]" {
			line = "file"
		}
		made = append(made, change{"beside", leaf.path, value, "ConfigMap Deployment", line})
	}
	return made
}

// baseTexts are the texts of a base, rendered once.
func baseTexts(t *testing.T, name string) map[string]string {
	t.Helper()
	entry, _ := rendered.LoadOrStore(name, sync.OnceValue(func() map[string]string { return texts(with(bases[name]).render(t)) }))
	return entry.(func() map[string]string)()
}

var rendered sync.Map

var secretData = regexp.MustCompile(`(?m)^(  \S+): [0-9A-Za-z+/=]{12,}$`)

// texts are the objects' texts by kind and name, without generated secrets.
func texts(o objects) map[string]string {
	byName := map[string]string{}
	for _, obj := range o {
		text := obj.text
		if obj.kind == "Secret" {
			text = secretData.ReplaceAllString(text, "$1: generated")
		}
		byName[obj.kind+" "+obj.meta.GetName()] = text
	}
	return byName
}

// changedKinds are the kinds of objects that came, went or changed.
func changedKinds(before, after map[string]string) []string {
	found := map[string]bool{}
	for _, pair := range [][2]map[string]string{{before, after}, {after, before}} {
		for name, text := range pair[0] {
			if pair[1][name] != text {
				kind, _, _ := strings.Cut(name, " ")
				found[kind] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func has(texts map[string]string, line string) bool {
	for _, text := range texts {
		for l := range strings.Lines(text) {
			if strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(l), "- ")) == line {
				return true
			}
		}
	}
	return false
}

// leaf is a value of the schema that has no parts of the chart's own.
type leaf struct {
	path   string
	schema map[string]any
}

func leaves(t *testing.T) []leaf {
	t.Helper()
	schema := readSchema(t)
	definitions := schema["definitions"].(map[string]any)
	var found []leaf
	var walk func(path string, node map[string]any)
	walk = func(path string, node map[string]any) {
		if ref, is := node["$ref"].(string); is {
			node = definitions[strings.TrimPrefix(ref, "#/definitions/")].(map[string]any)
		}
		properties, _ := node["properties"].(map[string]any)
		if len(properties) == 0 && path != ".global" {
			found = append(found, leaf{strings.TrimPrefix(path, "."), node})
		}
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			walk(path+"."+name, properties[name].(map[string]any))
		}
	}
	walk("", schema)
	return found
}

// TestHasBites: the search for a line finds whole lines only.
func TestHasBites(t *testing.T) {
	t.Parallel()
	in := map[string]string{"a": "x: 1\n  - name: b\n"}
	for line, want := range map[string]bool{"x: 1": true, "name: b": true, "x: ": false, "name: bb": false} {
		if has(in, line) != want {
			t.Error(fmt.Sprintf("%q", line), !want)
		}
	}
}
