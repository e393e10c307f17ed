package admin_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/invocation/admin"
)

// document is the OpenAPI document as a test reads it.
type document struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]any }
}

type operation struct {
	OperationID string `json:"operationId"`
	Parameters  []struct{ Name, In string }
	Responses   map[string]struct {
		Content map[string]struct{ Schema any }
	}
}

func readDocument(t *testing.T) *document {
	t.Helper()
	data, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	d := &document{}
	if err := json.Unmarshal(data, d); err != nil {
		t.Fatal(err)
	}
	return d
}

// holds checks an answer against what the document says of its route: the
// status is one of those it lists, and the body has the shape it gives.
func (d *document) holds(t *testing.T, method, pattern string, a answer) {
	t.Helper()
	_, route, found := strings.Cut(pattern, " ")
	if !found { // answers of the whole API: no such path, wrong method
		return
	}
	op, ok := d.Paths[route][strings.ToLower(method)]
	if !ok {
		t.Errorf("%s %s is not in the document", method, route)
		return
	}
	resp, ok := op.Responses[fmt.Sprint(a.status)]
	if !ok {
		if a.status != http.StatusInternalServerError && a.status != http.StatusForbidden {
			t.Errorf("%s %s: the document does not know status %d", method, route, a.status)
		}
		return
	}
	content, ok := resp.Content["application/json"]
	if !ok {
		if a.body != "" {
			t.Errorf("%s %s: %d with a body, which the document does not know", method, route, a.status)
		}
		return
	}
	var value any
	if err := json.Unmarshal([]byte(a.body), &value); err != nil {
		t.Errorf("%s %s: %v in %s", method, route, err, a.body)
		return
	}
	if fault := d.mismatch(content.Schema, value); fault != "" {
		t.Errorf("%s %s: %d: %s in %s", method, route, a.status, fault, a.body)
	}
}

// mismatch says where a value is not as a schema wants it; empty when it is. It
// knows the words of JSON Schema that the document uses for answers.
func (d *document) mismatch(schema, value any) string {
	s, ok := schema.(map[string]any)
	if !ok {
		return "no schema"
	}
	if ref, ok := s["$ref"].(string); ok {
		return d.mismatch(d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")], value)
	}
	if choices, ok := s["oneOf"].([]any); ok {
		if slices.ContainsFunc(choices, func(c any) bool { return d.mismatch(c, value) == "" }) {
			return ""
		}
		return "none of the choices fits"
	}
	if types := typesOf(s); !slices.Contains(types, kind(value)) && !(kind(value) == "integer" && slices.Contains(types, "number")) {
		return fmt.Sprintf("%s where %v is wanted", kind(value), types)
	}
	if enum, ok := s["enum"].([]any); ok && !slices.Contains(enum, value) {
		return fmt.Sprintf("%v is none of %v", value, enum)
	}
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			if fault := d.mismatch(s["items"], item); fault != "" {
				return fmt.Sprintf("[%d]: %s", i, fault)
			}
		}
	case map[string]any:
		return d.mismatchedMember(s, v)
	}
	return ""
}

func (d *document) mismatchedMember(s, members map[string]any) string {
	required, _ := s["required"].([]any)
	for _, name := range required {
		if _, there := members[name.(string)]; !there {
			return fmt.Sprintf("%v is missing", name)
		}
	}
	properties, _ := s["properties"].(map[string]any)
	for name, member := range members {
		schema, known := properties[name]
		if !known {
			schema = s["additionalProperties"]
		}
		if schema == false {
			return fmt.Sprintf("%s is unknown", name)
		}
		if fault := d.mismatch(schema, member); schema != nil && fault != "" {
			return name + ": " + fault
		}
	}
	return ""
}

func typesOf(s map[string]any) (types []string) {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		for _, one := range t {
			types = append(types, fmt.Sprint(one))
		}
	}
	return types
}

func kind(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v == float64(int64(v)) {
			return "integer"
		}
	}
	return "number"
}

// Every route is in the document, and every operation of the document is a
// route: both ways, by asking the mux.
func TestDocumentAndRoutesAgree(t *testing.T) {
	w := newWorld(t)
	methods := []string{"get", "put", "post", "delete", "patch"}
	documented := 0
	for path, operations := range w.document.Paths {
		for _, method := range methods {
			op, inDocument := operations[method]
			r := httptest.NewRequestWithContext(t.Context(), strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path), nil)
			_, pattern := w.mux.Handler(r)
			if routed := pattern == strings.ToUpper(method)+" "+path; routed != inDocument {
				t.Errorf("%s %s: in the document %v, routed to %q", method, path, inDocument, pattern)
			}
			if !inDocument {
				continue
			}
			documented++
			if op.OperationID == "" || len(op.Responses) == 0 {
				t.Errorf("%s %s has no operationId or no responses", method, path)
			}
			for _, p := range op.Parameters {
				if p.In == "path" && !strings.Contains(path, "{"+p.Name+"}") {
					t.Errorf("%s %s: parameter %s is not in the path", method, path, p.Name)
				}
			}
			if want := strings.Count(path, "{"); want != countPath(op) {
				t.Errorf("%s %s: %d path parameters, want %d", method, path, countPath(op), want)
			}
		}
	}
	if routes := admin.Routes(); documented != len(routes) {
		t.Errorf("%d operations in the document, %d routes: %v", documented, len(routes), routes)
	}
}

func countPath(op operation) (n int) {
	for _, p := range op.Parameters {
		if p.In == "path" {
			n++
		}
	}
	return n
}

func TestDocumentIsServed(t *testing.T) {
	w := newWorld(t)
	a := w.ask(t, http.MethodGet, "/openapi.json", "")
	var served map[string]any
	if err := json.Unmarshal([]byte(a.body), &served); err != nil || a.status != http.StatusOK || served["openapi"] != "3.1.0" {
		t.Fatalf("%d, %v, openapi %v", a.status, err, served["openapi"])
	}
	for _, ref := range strings.Split(a.body, `"#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(ref, `"`)
		if w.document.Components.Schemas[name] == nil {
			t.Errorf("schema %s is referred to and missing", name)
		}
	}
}
