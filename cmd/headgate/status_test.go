package main

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/cmd/headgate/internal/output"
	"github.com/headgate-io/headgate/invocation/admin"
)

// What only the store can tell is not shown as if it were nothing.
func TestStatus_storeAway(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	table := output.Table
	err := table.Print(&out, nil, func(w io.Writer) {
		tableOfStatus(w, admin.Status{Node: "n1", Buckets: []admin.Bucket{
			{Name: "headgate_counters"}, {Name: "headgate_nodes", Leader: "n1", Records: 3},
		}})
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"counters   unknown: the",
		"headgate_counters  -       -        -      -        unknown", "headgate_nodes     n1      3",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("lacks %q in:\n%s", want, out.String())
		}
	}
}
