// Package output prints what a command has to say: a table for people, JSON or
// YAML for programs.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Format is how something is printed.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

var formats = []string{string(Table), string(JSON), string(YAML)}

// Formats is the names of all formats, for completion.
func Formats() []string { return slices.Clone(formats) }

// String is the format's name.
func (f *Format) String() string { return string(*f) }

// Type is what help calls the value.
func (f *Format) Type() string { return strings.Join(formats, "|") }

// Set takes a format by its name.
func (f *Format) Set(s string) error {
	if !slices.Contains(formats, s) {
		return fmt.Errorf("must be one of %s", strings.Join(formats, ", "))
	}
	*f = Format(s)
	return nil
}

// AddFlag defines -o on set, with Table as its default.
func (f *Format) AddFlag(set *pflag.FlagSet) {
	*f = Table
	set.VarP(f, "output", "o", "output format")
}

// Print writes v in the format; as a table, what table writes, with columns
// separated by tabs.
func (f *Format) Print(w io.Writer, v any, table func(io.Writer)) error {
	switch *f {
	case JSON:
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	case YAML:
		return printYAML(w, v)
	default:
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		table(tw)
		return tw.Flush()
	}
}

// printYAML goes through JSON, so that both have the same names and order.
func printYAML(w io.Writer, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil {
		return err
	}
	plain(&node)
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return err
	}
	return enc.Close()
}

// plain takes JSON's braces and quotes off; the encoder puts back those quotes
// that YAML needs.
func plain(n *yaml.Node) {
	n.Style = 0
	for _, child := range n.Content {
		plain(child)
	}
}

// Row writes cells as one line of a table.
func Row(w io.Writer, cells ...any) {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = fmt.Sprint(c)
	}
	// A table is flushed at its end, which tells of errors.
	_, _ = fmt.Fprintln(w, strings.Join(texts, "\t"))
}

// YesNo is a truth for people.
func YesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
