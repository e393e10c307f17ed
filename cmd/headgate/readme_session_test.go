package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// reader is somebody who does what the README says, on a machine where its
// ports are taken: everything else is as it says.
type reader struct {
	t    *testing.T
	text readme
	data string // the data directory
	n    *node
	bin  string // what was built
}

// start types the README's first command, without the building.
func (r *reader) start() {
	r.t.Helper()
	first := strings.TrimSpace(r.text.section(r.t, "Start").blocks("")[0])
	args, ok := strings.CutPrefix(first, "go run ./cmd/headgate ")
	if !ok {
		r.t.Fatalf("the first command is %q", first)
	}
	environ := slices.Concat(patientNode, []string{
		"HEADGATE_GRPC_LISTEN=127.0.0.1:0", "HEADGATE_HTTP_LISTEN=127.0.0.1:0", "HEADGATE_ADMIN_LISTEN=127.0.0.1:0",
		"HEADGATE_DATA_DIR=" + r.data,
	})
	r.n = &node{process: launchIn(r.t, projectDir, headgateBinary(r.t), environ, strings.Fields(args)...)}
	r.n.awaitDoors()
	r.n.waitFor("/readyz", http.StatusOK, patience)
}

// do types a command and returns its exit code and what it printed.
func (r *reader) do(command string) (code int, printed string) {
	r.t.Helper()
	words := strings.Fields(command)
	switch words[0] {
	case "go":
		return r.build(words[1:])
	case "curl":
		return r.curl(command)
	case "./headgate":
	default:
		r.t.Fatalf("cannot do %q", command)
	}
	cmd := exec.Command(r.bin, words[1:]...)
	cmd.Env = append([]string{"HOME=" + r.t.TempDir()}, r.n.adminEnv()...)
	return r.run(cmd)
}

func (r *reader) run(cmd *exec.Cmd) (code int, printed string) {
	r.t.Helper()
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String()
}

// build builds as told, but not into the project's directory.
func (r *reader) build(args []string) (code int, printed string) {
	r.t.Helper()
	at := slices.Index(args, "-o")
	if at < 0 || args[at+1] != "headgate" {
		r.t.Fatalf("builds something else: %v", args)
	}
	r.bin = filepath.Join(r.t.TempDir(), args[at+1])
	args[at+1] = r.bin
	cmd := exec.Command("go", args...)
	cmd.Dir = projectDir
	return r.run(cmd)
}

var curl = regexp.MustCompile(`^curl -s -d '([^']+)' http://127\.0\.0\.1:7778(/\S+)$`)

// curl does what the README's curl does, for machines that have none.
func (r *reader) curl(command string) (code int, printed string) {
	r.t.Helper()
	m := curl.FindStringSubmatch(command)
	if m == nil {
		r.t.Fatalf("cannot do %q", command)
	}
	resp, err := http.Post("http://"+r.n.http+m[2], "application/x-www-form-urlencoded", strings.NewReader(m[1]))
	if err != nil {
		r.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return exitOK, string(body)
}

// The README's first session prints what the README says, with the node killed
// in the middle of it, and its last commands work.
func TestReadme_firstSession(t *testing.T) {
	t.Parallel()
	r := &reader{t: t, text: readReadme(t), data: t.TempDir()}
	steps := r.text.section(t, "A first session").session()
	if len(steps) != 6 {
		t.Fatalf("the session has %d steps; this test does build, check, check, curl, counter ls and counter reset", len(steps))
	}
	expect := func(c typed, want int) {
		t.Helper()
		code, printed := r.do(c.command)
		if code != want {
			t.Errorf("%s: exit code %d, want %d\n%s", c.command, code, want, printed)
		}
		c.wantOutput(t, printed)
	}
	build, allowed, denied, overHTTP, list, reset := steps[0], steps[1], steps[2], steps[3], steps[4], steps[5]
	r.start()
	expect(build, exitOK)
	expect(allowed, exitOK)
	for range 9 { // "Nine more like it"
		if code, printed := r.do(allowed.command); code != exitOK {
			t.Fatalf("exit code %d\n%s", code, printed)
		}
	}
	expect(denied, exitDenied)
	r.n.kill()
	r.start()
	expect(denied, exitDenied)
	r.n.stop()
	r.start()
	expect(denied, exitDenied)
	expect(overHTTP, exitOK)
	expect(list, exitOK)
	expect(reset, exitOK)
	expect(allowed, exitOK)
	if code, printed := r.do("./headgate status"); code != exitOK || !strings.Contains(printed, "ready") {
		t.Errorf("status: exit code %d\n%s", code, printed)
	}
	r.n.stop()
}
