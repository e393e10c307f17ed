package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// projectDir is where the README's commands are typed.
const projectDir = "../.."

// readme is the project's README, or a part of it.
type readme string

func readReadme(t *testing.T) readme {
	t.Helper()
	text, err := os.ReadFile(projectDir + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	return readme(text)
}

// section is what stands below a heading.
func (r readme) section(t *testing.T, heading string) readme {
	t.Helper()
	_, after, found := strings.Cut(string(r), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("README has no section %q", heading)
	}
	body, _, _ := strings.Cut(after, "\n## ")
	return readme(body)
}

var (
	fence  = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	inline = regexp.MustCompile("`([^`\n]+)`")
)

// blocks is the text of its code blocks of a language; empty is that of none.
func (r readme) blocks(language string) []string {
	var all []string
	for _, m := range fence.FindAllStringSubmatch(string(r), -1) {
		if m[1] == language {
			all = append(all, m[2])
		}
	}
	return all
}

// codes is what its prose says in code.
func (r readme) codes() []string {
	var all []string
	for _, m := range inline.FindAllStringSubmatch(fence.ReplaceAllString(string(r), ""), -1) {
		all = append(all, m[1])
	}
	return all
}

// typed is a command of a session and what the README says that it prints.
type typed struct{ command, output string }

// session is what follows a prompt, in order.
func (r readme) session() []typed {
	var all []typed
	for _, block := range r.blocks("") {
		for part := range strings.SplitSeq("\n"+block, "\n$ ") {
			if command, output, _ := strings.Cut(part, "\n"); command != "" {
				all = append(all, typed{command, output})
			}
		}
	}
	return all
}

var (
	spans  = regexp.MustCompile(`\b\d+(\.\d+)?(h|m|s|ms|µs)(\d+(\.\d+)?(m|s))*\b`)
	spaces = regexp.MustCompile(`[ \t]+`)
)

// shape is output with every span of time alike, and the columns that its width
// moves.
func shape(output string) string {
	return strings.TrimSpace(spaces.ReplaceAllString(spans.ReplaceAllString(output, "<span>"), " "))
}

// wantOutput compares what was printed with what the README says; an ellipsis
// at its end stands for the rest.
func (c typed) wantOutput(t *testing.T, got string) {
	t.Helper()
	said, cut := strings.CutSuffix(strings.TrimSpace(c.output), "…")
	got, want := shape(got), shape(said)
	if got != want && !(cut && strings.HasPrefix(got, want)) {
		t.Errorf("%s\nprints:\n%s\nand README says:\n%s", c.command, got, want)
	}
}

func TestReadme_shape(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		"FULL IN\n1h0m30s\n":      "FULL IN\n<span>",
		"a   10-H  9  1h0m5s":     "a 10-H 9 <span>",
		"now  0s  691ms  2.5s x1": "now <span> <span> <span> x1",
	} {
		if shape(got) != want {
			t.Errorf("%q is %q, want %q", got, shape(got), want)
		}
	}
}
