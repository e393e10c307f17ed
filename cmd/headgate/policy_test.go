package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// told is what a command is expected to do and say.
type told struct {
	code        int
	out, errs   []string // parts of what is said
	args, stdin string
}

func (w told) check(t *testing.T, environ []string) (stdout string) {
	t.Helper()
	code, stdout, stderr := headgateIn(t, w.stdin, environ, strings.Fields(w.args)...)
	if code != w.code {
		t.Errorf("%s: exit code %d, want %d", w.args, code, w.code)
	}
	for _, want := range w.out {
		if !strings.Contains(stdout, want) {
			t.Errorf("%s: lacks %q in:\n%s", w.args, want, stdout)
		}
	}
	for _, want := range w.errs {
		if !strings.Contains(stderr, want) {
			t.Errorf("%s: lacks %q in the error:\n%s", w.args, want, stderr)
		}
	}
	if len(w.errs) == 0 && stderr != "" {
		t.Errorf("%s: says %q", w.args, stderr)
	}
	return stdout
}

// A policy's life, as an operator lives it.
func TestPolicyCommands_story(t *testing.T) {
	t.Parallel()
	_, environ := newWorld(t)
	first := policyFile(t, "function: resize\naccount: {rates: 10-S}\n")
	second := policyFile(t, "function: resize\naccount: {rates: \"20-S,100-M\"}\n---\nfunction: blur\nversion: v2\ntotal: {rates: 5-S}\n")
	for _, step := range []told{
		{args: "policy ls", out: []string{"FUNCTION  VERSION  SOURCE"}},
		{args: "policy get resize", code: 2, errs: []string{"policy resize, version *: there is none"}},
		{args: "policy diff -f " + first, code: 1, out: []string{"+ resize version *", "    account.rates: 10-S"}},
		{args: "policy apply --dry-run -f " + first, out: []string{"would be created  -", "+ resize version *"}},
		{args: "policy apply -f " + first, out: []string{"resize    *        created  1"}},
		{args: "policy apply -f " + first, out: []string{"resize    *        unchanged  1"}},
		{args: "policy diff -f " + first},
		{args: "policy diff -o json -f " + first, out: []string{"[]"}},
		{args: "policy diff -f " + second, code: 1, out: []string{"~ resize version *", "    account.rates: 10-S -> 20-S,100-M", "+ blur version v2"}},
		{args: "policy apply -f " + second, out: []string{"resize    *        changed  2", "blur      v2       created  3"}},
		{args: "policy ls", out: []string{"blur      v2       bucket  3         yes       total 5-S", "resize    *        bucket  2         yes       account 20-S,100-M"}},
		{args: "policy get resize", out: []string{"source    bucket", "revision  2", "in force  yes", "rates: 20-S,100-M"}},
		{args: "policy get resize v7 --effective", out: []string{"version   *", "revision  2"}},
		{args: "policy apply --revision 1 -f " + first, code: 2, errs: []string{
			"policy resize, version *: not applied, it was changed since it was read: the policy is at revision 2",
		}},
		{args: "policy apply --revision 2 -f " + first, out: []string{"changed  4"}},
		{args: "policy apply --revision 2 -f " + second, code: 2, errs: []string{"--revision is for one policy, the files hold 2"}},
		{args: "policy rm blur v2 --revision 1", code: 2, errs: []string{"policy blur, version v2: "}},
		{args: "policy rm blur v2", out: []string{"policy blur, version v2: removed"}},
		{args: "policy rm blur v2", code: 2, errs: []string{"there is none"}},
		{args: "__complete policy get re", out: []string{"resize\n"}, errs: []string{"ShellCompDirectiveNoFileComp"}},
	} {
		step.check(t, environ)
	}
}

// What get writes, apply takes.
func TestPolicyCommands_getThenApply(t *testing.T) {
	t.Parallel()
	_, environ := newWorld(t)
	told{args: "policy apply -f -", stdin: "function: resize\nsubject: {rates: 5-S}\n", out: []string{"created"}}.check(t, environ)
	for _, format := range []string{"yaml", "json"} {
		doc := told{args: "policy get resize -o " + format}.check(t, environ)
		told{args: "policy apply -f -", stdin: doc, out: []string{"unchanged"}}.check(t, environ)
		changed := strings.Replace(doc, "5-S", "6-S", 1)
		told{args: "policy apply --dry-run -f -", stdin: changed, out: []string{"would be changed"}}.check(t, environ)
	}
	var list []struct{ Function, Revision string }
	out := told{args: "policy ls -o json"}.check(t, environ)
	if err := json.Unmarshal([]byte(out), &list); err != nil || len(list) != 1 || list[0].Revision != "1" {
		t.Errorf("ls as JSON: %v\n%s", err, out)
	}
}

// Every fault is told with its place before anything is written.
func TestPolicyCommands_faults(t *testing.T) {
	t.Parallel()
	_, environ := newWorld(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml":   "function: good\naccount: {rates: 1-S}\n",
		"b.yml":    "function: bad\naccount: {rates: lots}\n---\nfunction: worse\nnope: 1\n",
		"c.json":   `{"function":"good","total":{"rates":"1-S"}}`,
		"readme":   "not a policy",
		".d.yaml":  "nope",
		"warn.yml": "function: idle\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		"warning: " + dir + "/warn.yml:1: has no tier: it limits nothing",
		"headgate: " + dir + "/b.yml:2: [1].account.rates: \"lots\" ",
		"headgate: " + dir + "/b.yml:5: [2].nope: ",
		"headgate: " + dir + `/c.json: function "good" version "*" is in ` + dir + "/a.yaml too",
	}
	told{args: "policy validate -f " + dir, code: 2, errs: want}.check(t, nil)
	told{args: "policy apply -f " + dir, code: 2, errs: want}.check(t, environ)
	told{args: "policy ls -o yaml", out: []string{"[]"}}.check(t, environ)

	told{args: "policy validate -f -", stdin: "function: f\ntotal: {rates: 1-X}\n", code: 2, errs: []string{`headgate: standard input:2: total.rates: "1-X"`}}.check(t, nil)
	told{args: "policy validate -f - -f " + dir + "/a.yaml", stdin: "function: f\ntotal: {rates: 1-S}\n", out: []string{"2 valid"}}.check(t, nil)
	told{args: "policy ls --source fiel", code: 2, errs: []string{`--source "fiel": must be one of file, bucket, nvcf`}}.check(t, nil)
	told{args: "policy validate -f /nonexistent", code: 2, errs: []string{"/nonexistent: no such file"}}.check(t, nil)
	told{args: "policy validate -f " + t.TempDir(), code: 2, errs: []string{"holds no *.yaml"}}.check(t, nil)
	told{args: "policy validate", code: 2, errs: []string{`required flag(s) "file" not set`}}.check(t, nil)
}
