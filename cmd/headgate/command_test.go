package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/invocation"
)

// Help is on standard output, ends with 0, and says what the exit codes mean.
func TestHelp(t *testing.T) {
	t.Parallel()
	cases := []struct {
		args []string
		want []string
	}{
		{[]string{"--help"}, []string{"serve", "check", "version", "completion", "Exit codes:", "1  check: denied"}},
		{nil, []string{"Usage:", "Exit codes:"}},
		{[]string{"serve", "--help"}, []string{
			"Exit codes:", "HEADGATE_NATS_TLS_CA_FILE", "--grpc-listen host:port", "127.0.0.1:7777", "--cluster-routes", "--insecure",
		}},
		{[]string{"check", "--help"}, []string{"Exit codes:", "--account", "--cost int", "HEADGATE_CHECK_SERVER", "127.0.0.1:7778", "-o, --output"}},
		{[]string{"policy", "--help"}, []string{"apply", "diff", "get", "ls", "rm", "test", "validate", "HEADGATE_SERVER", "127.0.0.1:7776"}},
		{[]string{"policy", "apply", "--help"}, []string{"-f, --file", "--dry-run", "--revision", "Exit code 2"}},
		{[]string{"policy", "diff", "--help"}, []string{"Exit codes:", "1  something would"}},
		{[]string{"counter", "--help"}, []string{"get", "grant", "ls", "reset", "--tier total"}},
		{[]string{"status", "--help"}, []string{"HEADGATE_SERVER", "-o, --output"}},
		{[]string{"completion", "bash"}, []string{"__start_headgate"}},
	}
	for _, c := range cases {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := headgate(t, nil, c.args...)
			if code != exitOK || stderr != "" {
				t.Errorf("exit code %d, error %q", code, stderr)
			}
			for _, want := range c.want {
				if !strings.Contains(stdout, want) {
					t.Errorf("lacks %q in:\n%s", want, stdout)
				}
			}
		})
	}
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"frobnicate":                          `unknown command "frobnicate"`,
		"check":                               `required flag(s) "function" not set`,
		"check --function f -o xml":           "must be one of table, json, yaml",
		"check --function f --cost x":         `invalid argument "x"`,
		"check --function f --server ftp://h": "must be host:port, or a URL with http or https",
		"check --function f --server 127.1:1": "ask 127.1:1:",
		"version extra":                       "unknown command",
	} {
		code, stdout, stderr := headgate(t, nil, strings.Fields(args)...)
		if code != exitError || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit code %d, output %q, error %q, want %q", args, code, stdout, stderr, want)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	code, stdout, _ := headgate(t, nil, "version", "-o", "json")
	var b struct{ Version, Revision, Go string }
	if err := json.Unmarshal([]byte(stdout), &b); err != nil || code != exitOK {
		t.Fatalf("exit code %d: %v", code, err)
	}
	if b.Version == "" || b.Revision == "" || !strings.HasPrefix(b.Go, "go1.") {
		t.Errorf("%+v", b)
	}
}

func TestServe_printConfig(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := headgate(t, []string{"HEADGATE_HASH_SECRET=0123456789abcdef"},
		"serve", "--print-config", "--node-name=n1", "--policies=p.yaml")
	if code != exitOK || stderr != "" {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if strings.Contains(stdout, "0123456789abcdef") || !strings.Contains(stdout, "secret: (redacted)") {
		t.Errorf("the secret is not redacted:\n%s", stdout)
	}
	if !strings.Contains(stdout, "path: p.yaml") || !strings.Contains(stdout, "name: n1") {
		t.Errorf("lacks what the flags say:\n%s", stdout)
	}
}

// check says who may run in its exit code and its table.
func TestCheck(t *testing.T) {
	t.Parallel()
	n := startNode(t, "--data-dir", t.TempDir(), "--policies", policyFile(t, "function: resize\naccount: {rates: 2-H}\n"))
	check := func(args ...string) (int, string, string) {
		return headgate(t, []string{"HEADGATE_CHECK_SERVER=" + n.http}, append([]string{"check", "--function=resize"}, args...)...)
	}

	code, stdout, _ := check("--account=acme", "--version=v1")
	if code != exitOK || !strings.Contains(stdout, "allowed    yes") || !strings.Contains(stdout, "account  2-H   1") {
		t.Errorf("first: exit code %d\n%s", code, stdout)
	}
	if code, _, _ := check("--account=acme", "--version=v1", "--cost=0"); code != exitOK {
		t.Errorf("looking: exit code %d", code)
	}
	if code, _, _ := check("--account=acme", "--version=v1"); code != exitOK {
		t.Errorf("second: exit code %d: looking charged", code)
	}
	code, stdout, stderr := check("--account=acme", "--version=v1")
	if code != exitDenied || stderr != "" || !strings.Contains(stdout, "limited by   account 2-H") || !strings.Contains(stdout, "retry after") {
		t.Errorf("third: exit code %d, %q\n%s", code, stderr, stdout)
	}
	code, stdout, _ = check("--account=acme", "--version=v1", "-o", "json")
	var a invocation.Answer
	if err := json.Unmarshal([]byte(stdout), &a); err != nil || code != exitDenied || a.LimitedBy == nil || a.LimitedBy.Tier != "account" {
		t.Errorf("as JSON: exit code %d, %v\n%s", code, err, stdout)
	}
	code, stdout, _ = check("--account=acme", "--version=v1", "--cost=3")
	if code != exitDenied || !strings.Contains(stdout, "never: the cost is above the limit") {
		t.Errorf("impossible: exit code %d\n%s", code, stdout)
	}
	code, stdout, stderr = check("--version=v1")
	if code != exitError || stdout != "" || !strings.Contains(stderr, "account: ") {
		t.Errorf("without an account: exit code %d\n%s", code, stderr)
	}
	n.stop()
	if code, _, stderr := check("--account=acme"); code != exitError || !strings.Contains(stderr, "refused") {
		t.Errorf("of nobody: exit code %d, %q", code, stderr)
	}
}
