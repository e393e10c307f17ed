package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	yamlv3 "go.yaml.in/yaml/v3"
)

// value is one value of values.yaml and what is said of it.
type value struct {
	path    string
	comment string
	text    string // its default
	leaf    bool
}

// valuesOf are the values of values.yaml in their order, sections too.
func valuesOf(t *testing.T) []value {
	t.Helper()
	found := commentedValues(t)
	var leaves []value
	for _, v := range found {
		if v.leaf {
			leaves = append(leaves, v)
		}
	}
	return leaves
}

func commentedValues(t *testing.T) []value {
	t.Helper()
	var doc yamlv3.Node
	if err := yamlv3.Unmarshal([]byte(readFile(t, filepath.Join(chartDir, "values.yaml"))), &doc); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, leaf := range leaves(t) {
		known[leaf.path] = true
	}
	known["config"] = true
	var found []value
	var walk func(path string, node *yamlv3.Node)
	walk = func(path string, node *yamlv3.Node) {
		for i := 0; i+1 < len(node.Content); i += 2 {
			key, val := node.Content[i], node.Content[i+1]
			at := strings.TrimPrefix(path+"."+key.Value, ".")
			v := value{path: at, comment: said(key.HeadComment), leaf: known[at]}
			if v.leaf {
				v.text = written(t, val)
			}
			found = append(found, v)
			if !v.leaf {
				walk(v.path, val)
			}
		}
	}
	walk("", doc.Content[0])
	return found
}

// said is the last paragraph of a comment, as one line.
func said(comment string) string {
	paragraphs := strings.Split(comment, "\n\n")
	var words []string
	for line := range strings.Lines(paragraphs[len(paragraphs)-1]) {
		words = append(words, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#")))
	}
	return strings.Join(words, " ")
}

// written is a default on one line.
func written(t *testing.T, node *yamlv3.Node) string {
	t.Helper()
	flow := *node
	plain(&flow)
	text, err := yamlv3.Marshal(&flow)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// plain takes comments off and puts everything on one line.
func plain(node *yamlv3.Node) {
	node.HeadComment, node.LineComment, node.FootComment = "", "", ""
	if node.Kind == yamlv3.MappingNode || node.Kind == yamlv3.SequenceNode {
		node.Style = yamlv3.FlowStyle
	}
	for _, inner := range node.Content {
		plain(inner)
	}
}

// Each value says first which it is, and then what it does.
func TestEveryValueIsCommented(t *testing.T) {
	t.Parallel()
	for _, v := range commentedValues(t) {
		if !strings.HasPrefix(v.comment, v.path+" ") && !strings.HasPrefix(v.comment, v.path+":") {
			t.Errorf("the comment of %s begins with %q", v.path, v.comment[:min(len(v.comment), 40)])
		}
		if !strings.HasSuffix(v.comment, ".") {
			t.Errorf("the comment of %s does not end a sentence", v.path)
		}
	}
}

const (
	tableBegins = "<!-- values: written by go test ./test/chart -run README -update -->\n"
	tableEnds   = "<!-- end of values -->\n"
)

// The table of the chart's README is made of the comments in values.yaml.
func TestREADMEHasTheValues(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("\n| value | default | |\n|---|---|---|\n")
	for _, v := range valuesOf(t) {
		meaning := strings.TrimSpace(strings.TrimPrefix(v.comment, v.path))
		meaning = strings.TrimSpace(strings.TrimPrefix(meaning, ":"))
		fmt.Fprintf(&table, "| `%s` | `%s` | %s |\n", v.path, v.text, strings.ReplaceAll(meaning, "|", `\|`))
	}
	table.WriteString("\n")
	path := filepath.Join(chartDir, "README.md")
	have := readFile(t, path)
	before, rest, begins := strings.Cut(have, tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatal("the README has no place for the values")
	}
	want := before + tableBegins + table.String() + tableEnds + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if have != want {
		t.Error("the README's table is not that of values.yaml; run this test with -update")
	}
}
