package output_test

import (
	"io"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/cmd/headgate/internal/output"
)

func TestFormat_Print(t *testing.T) {
	t.Parallel()
	type thing struct {
		Name  string   `json:"name"`
		Count int      `json:"count"`
		Text  string   `json:"text"`
		List  []string `json:"list"`
	}
	v := thing{"a<b", 3, "12", []string{"x", "y"}}
	for format, want := range map[output.Format]string{
		output.Table: "NAME  COUNT\na<b   3\n",
		output.JSON:  "{\n  \"name\": \"a<b\",\n  \"count\": 3,\n  \"text\": \"12\",\n  \"list\": [\n    \"x\",\n    \"y\"\n  ]\n}\n",
		output.YAML:  "name: a<b\ncount: 3\ntext: \"12\"\nlist:\n  - x\n  - y\n",
	} {
		var b strings.Builder
		err := format.Print(&b, v, func(w io.Writer) {
			output.Row(w, "NAME", "COUNT")
			output.Row(w, v.Name, v.Count)
		})
		if err != nil {
			t.Fatal(err)
		}
		if b.String() != want {
			t.Errorf("%s: got %q, want %q", format, b.String(), want)
		}
	}
}

func TestFormat_Set(t *testing.T) {
	t.Parallel()
	var f output.Format
	if err := f.Set("yaml"); err != nil || f != output.YAML {
		t.Errorf("yaml: %v, %s", err, f)
	}
	if err := f.Set("xml"); err == nil || f != output.YAML {
		t.Errorf("xml: %v, %s", err, f)
	}
}
