package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a tighter limit would have done to a minute of calls, beside the one in
// force.
func TestPolicyTestCommand(t *testing.T) {
	t.Parallel()
	_, environ := newWorld(t)
	told{args: "policy apply -f -", stdin: "function: resize\naccount: {rates: 3-M}\n---\nfunction: blur\ntotal: {rates: 1-H}\n", out: []string{"created"}}.check(t, environ)
	proposed := policyFile(t, "function: resize\naccount: {rates: 2-M}\n")
	log := filepath.Join(t.TempDir(), "requests.jsonl")
	lines := `{"time":"2030-01-01T12:00:00Z","account":"acme","function":"resize","version":"v1","subject":"jane"}
{"time":"2030-01-01T12:00:01Z","account":"acme","function":"resize","version":"v1"}
{"time":"2030-01-01T12:00:02Z","account":"acme","function":"resize","version":"v1"}
{"time":"2030-01-01T12:00:03Z","account":"acme","function":"resize","version":"v1"}
{"time":1893499204,"account":"other","function":"blur"}
{"time":1893499205,"account":"other","function":"blur"}
{"time":1893499206,"account":"other","function":"free"}
`
	if err := os.WriteFile(log, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	out := told{args: "policy test -f " + proposed + " --log " + log, code: 1, out: []string{
		"invocations     7", "newly denied    1", "newly admitted  0",
		"proposed  4         3       0", "in force  5         2       0",
		"2       1    acme     resize    *        account  2-M   2030-01-01T12:00:02.000Z  2030-01-01T12:00:03.000Z",
		"3     2030-01-01T12:00:02.000Z  acme     resize    v1       denied   account 2-M  59s",
	}}.check(t, environ)
	if strings.Contains(out, "jane") {
		t.Errorf("tells a subject:\n%s", out)
	}
	told{args: "policy test -f - --log " + log, stdin: "function: resize\naccount: {rates: 3-M}\n", out: []string{"newly denied    0"}}.check(t, environ)
	told{args: "policy test -f " + proposed + " --log - --against " + proposed, stdin: lines, out: []string{"newly denied    0"}}.check(t, nil)

	var report replayReport
	out = told{args: "policy test -o json --denials 1 -f " + proposed + " --log " + log, code: 1}.check(t, environ)
	if err := json.Unmarshal([]byte(out), &report); err != nil || report.NewlyDenied != 1 || len(report.Denials) != 1 || len(report.Groups) == 0 {
		t.Errorf("as JSON: %v\n%s", err, out)
	}

	told{args: "policy test -f " + proposed + " --log -", stdin: "{}\n", code: 2, errs: []string{"headgate: -: line 1: time: is required"}}.check(t, environ)
	told{args: "policy test -f " + proposed + " --log -", stdin: lines, code: 2, errs: []string{"--against reads them from a file"}}.check(t, []string{"HEADGATE_SERVER=127.0.0.1:1"})
	told{args: "policy test -f " + proposed + " --log " + t.TempDir(), code: 2, errs: []string{"is a directory"}}.check(t, environ)
}
