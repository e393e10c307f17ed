package policy

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// spot is a value of a document and the way to it.
type spot struct {
	path string // with accounts
	safe string // without
	node *yaml.Node
}

// field is the value of a field whose name the document form fixes.
func (s spot) field(name string, node *yaml.Node) spot {
	return spot{joinPath(s.path, name), joinPath(s.safe, name), resolve(node)}
}

// account is the value under the i-th account of a mapping, counted from 0.
func (s spot) account(name string, i int, node *yaml.Node) spot {
	return spot{joinPath(s.path, escapeStep(name)), indexPath(s.safe, i), resolve(node)}
}

// item is the i-th item of a list, counted from 0.
func (s spot) item(i int, node *yaml.Node) spot {
	return spot{indexPath(s.path, i), indexPath(s.safe, i), resolve(node)}
}

func joinPath(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// indexPath counts from 1, as people do.
func indexPath(path string, i int) string { return path + "[" + strconv.Itoa(i+1) + "]" }

// escapeStep quotes a name that would make a path ambiguous.
func escapeStep(name string) string {
	if name == "" || strings.ContainsAny(name, ".[]\" \n") {
		return strconv.Quote(name)
	}
	return name
}

// maxAliases bounds how many aliases may stand behind one another.
const maxAliases = 8

// resolve follows aliases to the value they stand for.
func resolve(node *yaml.Node) *yaml.Node {
	for range maxAliases {
		if node == nil || node.Kind != yaml.AliasNode {
			return node
		}
		node = node.Alias
	}
	return nil
}

// scalar is the text of the value and whether it is one. Numbers count as
// text, for a function may be named 42; null, true and false do not.
func (s spot) scalar() (string, bool) {
	if s.node == nil || s.node.Kind != yaml.ScalarNode {
		return "", false
	}
	switch s.node.Tag {
	case "!!null", "!!bool", "!!binary", "!!merge":
		return "", false
	default:
		return s.node.Value, true
	}
}

// kind is what sort of value it is, for people; never the value itself, which
// may be an account.
func (s spot) kind() string {
	if s.node == nil {
		return "nothing"
	}
	switch s.node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if s.node.Tag == "!!null" {
			return "empty"
		}
		return "a single value"
	default:
		return "nothing"
	}
}

// text is the value as a fault shows it; empty unless it is a single value.
func (s spot) text() string {
	if s.node == nil || s.node.Kind != yaml.ScalarNode {
		return ""
	}
	return s.node.Value
}

// line is where the value stands; 0 when it is not known.
func (s spot) line() int {
	if s.node == nil {
		return 0
	}
	return s.node.Line
}
