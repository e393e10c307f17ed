package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// MaxBytes bounds the text that [Parse] reads.
const MaxBytes = 32 << 20

// roots cuts a text into its documents.
func roots(data []byte) ([]*yaml.Node, *Fault) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	switch {
	case len(data) > MaxBytes:
		return nil, &Fault{Reason: fmt.Sprintf("holds %d bytes, at most %d may be given", len(data), MaxBytes)}
	case !utf8.Valid(data):
		return nil, &Fault{Reason: "is not UTF-8", Line: lineOfInvalid(data)}
	}
	var jsonFault *Fault
	if start := bytes.TrimSpace(data); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		docs, fault := jsonRoots(data)
		if fault == nil {
			return docs, nil
		}
		jsonFault = fault // YAML may start so as well
	}
	docs, fault := yamlRoots(data)
	if fault != nil && jsonFault != nil {
		return nil, jsonFault
	}
	return docs, fault
}

func lineOfInvalid(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		data = data[size:]
	}
	return line
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

func yamlRoots(data []byte) ([]*yaml.Node, *Fault) {
	var docs []*yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			text := err.Error()
			fault := &Fault{Reason: "not YAML: " + yamlLine.ReplaceAllString(text, "")}
			if m := yamlLine.FindStringSubmatch(text); m != nil {
				fault.Line, _ = strconv.Atoi(m[1]) // no line: 0, not known
			}
			return nil, fault
		}
		if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
			docs = append(docs, doc.Content[0])
		}
	}
}

// maxDepth bounds how deep JSON values may be nested; policies need five.
const maxDepth = 32

// jsonRoots reads JSON with its own rules, which differ from YAML's in escapes,
// into the same tree.
func jsonRoots(data []byte) ([]*yaml.Node, *Fault) {
	r := &jsonReader{dec: json.NewDecoder(bytes.NewReader(data)), data: data, line: 1}
	r.dec.UseNumber()
	var docs []*yaml.Node
	for {
		node, err := r.value(0)
		if errors.Is(err, io.EOF) {
			return docs, nil
		}
		if err != nil {
			r.advance(r.dec.InputOffset())
			return nil, &Fault{Reason: "not JSON: " + err.Error(), Line: r.line}
		}
		docs = append(docs, node)
	}
}

type jsonReader struct {
	dec  *json.Decoder
	data []byte
	at   int64 // line is the line of this offset
	line int
}

func (r *jsonReader) advance(to int64) {
	r.line += bytes.Count(r.data[r.at:to], []byte("\n"))
	r.at = to
}

// value reads the next value; io.EOF only when nothing is left before it.
func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	token, err := r.dec.Token()
	if err != nil {
		if depth > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	r.advance(r.dec.InputOffset())
	node := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line}
	switch v := token.(type) {
	case json.Delim:
		return node, r.nested(node, v, depth)
	case string:
		node.Tag, node.Value = "!!str", v
	case json.Number:
		node.Tag, node.Value = "!!float", v.String()
	case bool:
		node.Tag, node.Value = "!!bool", strconv.FormatBool(v)
	default:
		node.Tag, node.Value = "!!null", "null"
	}
	return node, nil
}

// nested reads what stands between open and its counterpart into node.
func (r *jsonReader) nested(node *yaml.Node, open json.Delim, depth int) error {
	if depth >= maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	node.Kind = yaml.SequenceNode
	if open == '{' {
		node.Kind = yaml.MappingNode
	}
	for r.dec.More() { // keys and values of an object alternate in Content
		child, err := r.value(depth + 1)
		if err != nil {
			return err
		}
		node.Content = append(node.Content, child)
	}
	_, err := r.dec.Token() // the closing one
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}
