package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// Every name that the README gives is one of the program: its commands and
// their flags, keys of the configuration, metrics, paths of the API and of the
// project.
func TestReadme_names(t *testing.T) {
	t.Parallel()
	text := readReadme(t)
	p := askedProgram(t)
	for _, kind := range []struct {
		name    string
		pattern *regexp.Regexp // of what is in code; the first group is the name
		check   func(name string) error
		atLeast int
	}{
		{"command", regexp.MustCompile(`^(?:\./)?headgate ([a-z].*)$`), p.command, 4},
		{"command", regexp.MustCompile(`^((?:policy|counter) [a-z].*)$`), p.command, 2},
		{"flag", regexp.MustCompile(`^(--[a-z-]+)$`), p.flag, 9},
		{"key", regexp.MustCompile(`^([a-z]+(?:\.[a-z][A-Za-z]*)+)(?:: .*)?$`), p.key, 5},
		{"variable", regexp.MustCompile(`^(HEADGATE_[A-Z_]+)$`), p.variable, 1},
		{"metric", regexp.MustCompile(`^(headgate_[a-z_]+)$`), p.metric, 4},
		{"path", regexp.MustCompile(`^(?:[A-Z]+ )?(/[a-z0-9./]+)$`), p.path, 6},
		{"file", regexp.MustCompile(`^((?:helm|\.ci|cmd|test|kvstore)/[^ ]+)$`), inProject, 3},
		{"step", regexp.MustCompile(`^\.ci/run ([a-z ]+)$`), gateStep, 1},
		{"test", regexp.MustCompile(`^go test (\./.*)$`), testFlags, 2},
		{"package", regexp.MustCompile(`^go doc (\./[a-z/]+)$`), inProject, 2},
		{"rate", regexp.MustCompile(`^(\d+[-/].*)$`), rate, 3},
	} {
		seen := 0
		for _, code := range text.codes() {
			if m := kind.pattern.FindStringSubmatch(code); m != nil && !notOurs(code) {
				seen++
				if err := kind.check(m[1]); err != nil {
					t.Errorf("%s `%s`: %v", kind.name, code, err)
				}
			}
		}
		if seen < kind.atLeast {
			t.Errorf("%d names of a %s found, want at least %d: is %v still right?", seen, kind.name, kind.atLeast, kind.pattern)
		}
	}
	for _, block := range text.blocks("yaml") {
		if _, warnings, err := policy.Parse([]byte(block)); err != nil || len(warnings) > 0 {
			t.Errorf("policy: %v, %v\n%s", err, warnings, block)
		}
	}
	for line := range strings.Lines(text.section(t, "Design").blocks("")[0]) {
		if err := inProject(strings.Fields(line)[0]); err != nil {
			t.Error(err)
		}
	}
}

// notOurs are names of other houses that look like ours.
func notOurs(code string) bool { return strings.HasPrefix(code, "grpc.health.") }

// program is what there is to compare with.
type program struct {
	root    *cobra.Command
	keys    map[string]any
	metrics string
	doors   []string // front door and admin listener
}

func askedProgram(t *testing.T) program {
	t.Helper()
	code, printed, stderr := headgate(t, nil, "serve", "--print-config")
	if code != exitOK {
		t.Fatal(stderr)
	}
	p := program{root: newRoot(streams{err: os.Stderr})}
	if err := yaml.Unmarshal([]byte(printed), &p.keys); err != nil {
		t.Fatal(err)
	}
	n := startNode(t, "--data-dir", t.TempDir())
	_, p.metrics = n.get("/metrics")
	p.doors = []string{n.http, n.admin}
	return p
}

// command takes a command line apart as the program would.
func (p program) command(line string) error {
	cmd, rest, err := p.root.Find(strings.Fields(line))
	switch {
	case err != nil:
		return err
	case cmd.HasSubCommands():
		return fmt.Errorf("%q is no command", line)
	}
	return cmd.ParseFlags(rest)
}

func (p program) flag(name string) error {
	var found *pflag.Flag
	var look func(*cobra.Command)
	look = func(c *cobra.Command) {
		if f := c.Flag(strings.TrimPrefix(name, "--")); f != nil {
			found = f
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(p.root)
	if found == nil {
		return fmt.Errorf("no command has it")
	}
	return nil
}

func (p program) key(path string) error {
	var at any = p.keys
	for name := range strings.SplitSeq(path, ".") {
		section, _ := at.(map[string]any)
		value, ok := section[name]
		if !ok {
			return fmt.Errorf("no such key")
		}
		at = value
	}
	return nil
}

// variable wants the key that has this name in the environment.
func (p program) variable(name string) error {
	var out strings.Builder
	cmd := newRoot(streams{out: &out, err: os.Stderr, environ: []string{name + "=nats://nats:4222"}})
	cmd.SetArgs([]string{"serve", "--print-config"})
	return cmd.Execute()
}

func (p program) metric(name string) error {
	if !strings.Contains(p.metrics, "\n"+name+" ") && !strings.Contains(p.metrics, "\n"+name+"{") {
		return fmt.Errorf("/metrics has none with a value")
	}
	return nil
}

func (p program) path(path string) error {
	for _, door := range p.doors {
		resp, err := http.Get("http://" + door + path)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			return nil
		}
	}
	return fmt.Errorf("neither listener has it")
}

func inProject(path string) error {
	_, err := os.Stat(filepath.Join(projectDir, path))
	return err
}

var gateSteps = regexp.MustCompile(`(?m)^steps=\(([a-z ]+)\)$`)

func gateStep(names string) error {
	script, err := os.ReadFile(projectDir + "/.ci/run")
	if err != nil {
		return err
	}
	steps := gateSteps.FindSubmatch(script)
	for _, name := range strings.Fields(names) {
		if steps == nil || !slices.Contains(strings.Fields(string(steps[1])), name) {
			return fmt.Errorf("no step %q", name)
		}
	}
	return nil
}

var definedFlag = regexp.MustCompile(`flag\.[A-Z]\w*\("([^"]+)"`)

// testFlags wants the flags that a package's tests are given.
func testFlags(line string) error {
	words := strings.Fields(line)
	files, err := filepath.Glob(filepath.Join(projectDir, words[0], "*_test.go"))
	if err != nil {
		return err
	}
	var defined []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range definedFlag.FindAllStringSubmatch(string(source), -1) {
			defined = append(defined, m[1])
		}
	}
	for _, word := range words[1:] {
		if name, isFlag := strings.CutPrefix(word, "-"); isFlag && !slices.Contains(defined, name) {
			return fmt.Errorf("its tests have no flag -%s, but %v", name, defined)
		}
	}
	return nil
}

func rate(text string) error {
	_, err := counter.ParseRate(text)
	return err
}
