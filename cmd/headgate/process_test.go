package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait for something that must happen.
const patience = 20 * time.Second

// process is a real program under test, killed with its test at the latest.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	exited chan struct{} // closed once it exited and its output is read

	mu     sync.Mutex
	stderr bytes.Buffer
	lines  chan string // standard error, line by line
}

// launch starts a program in an empty directory and reads what it says.
func launch(t *testing.T, program string, environ []string, args ...string) *process {
	t.Helper()
	return launchIn(t, t.TempDir(), program, environ, args...)
}

// launchIn is launch in a directory.
func launchIn(t *testing.T, dir, program string, environ []string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}, environ...)
	cmd.Dir = dir
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: cmd, exited: make(chan struct{}), lines: make(chan string, 4096)}
	go p.read(out)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // most have exited by now
		<-p.exited
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(cmd.Args[1:], " "), p.said())
		}
	})
	return p
}

func (p *process) read(out io.Reader) {
	defer close(p.exited)
	defer close(p.lines)
	scan := bufio.NewScanner(out)
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		p.mu.Lock()
		p.stderr.WriteString(scan.Text() + "\n")
		p.mu.Unlock()
		select {
		case p.lines <- scan.Text():
		default: // nobody waits for lines any more
		}
	}
	_ = p.cmd.Wait() // the exit code is asked for by who wants it
}

func (p *process) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stderr.String()
}

func (p *process) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %v: %v", s, err)
	}
}

// exit waits until the process has exited and returns its code; -1 is a signal.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatalf("still runs after %v", patience)
		return 0
	}
}

// stop sends SIGTERM and wants exit code 0.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		p.t.Fatalf("exit code %d after SIGTERM", code)
	}
}

// kill sends SIGKILL and waits for the end.
func (p *process) kill() {
	p.t.Helper()
	p.signal(syscall.SIGKILL)
	p.exit()
}

// node is a headgate serve.
type node struct {
	*process
	grpc, http, admin string
}

// patientNode lets a stall of a loaded machine not turn a decision into a
// degraded one: these tests judge counters and not speed.
var patientNode = []string{"HEADGATE_LIMITER_ATTEMPT=1s"}

// launchNode starts headgate serve on free ports of its own, with a short
// notice, and waits until it listens.
func launchNode(t *testing.T, args ...string) *node {
	t.Helper()
	all := append([]string{
		"serve", "--grpc-listen=127.0.0.1:0", "--http-listen=127.0.0.1:0", "--admin-listen=127.0.0.1:0",
		"--node-name=n1", "--drain-notice=0s",
	}, args...)
	n := &node{process: launch(t, headgateBinary(t), patientNode, all...)}
	n.awaitDoors()
	return n
}

// awaitDoors waits until all listeners are open and told.
func (n *node) awaitDoors() {
	n.t.Helper()
	deadline := time.After(patience)
	for n.grpc == "" || n.http == "" || n.admin == "" {
		select {
		case line, more := <-n.lines:
			if !more {
				n.t.Fatalf("exited before it listened: code %d", n.exit())
			}
			n.note(line)
		case <-deadline:
			n.t.Fatal("does not listen")
		}
	}
}

// note takes addresses off the log.
func (n *node) note(line string) {
	var entry struct{ Msg, Address string }
	if json.Unmarshal([]byte(line), &entry) != nil {
		return
	}
	switch entry.Msg {
	case "grpc front door open":
		n.grpc = entry.Address
	case "http front door open":
		n.http = entry.Address
	case "admin listener open":
		n.admin = entry.Address
	}
}

// startNode is launchNode, ready.
func startNode(t *testing.T, args ...string) *node {
	t.Helper()
	n := launchNode(t, args...)
	n.waitFor("/readyz", http.StatusOK, patience)
	return n
}

// get asks the admin listener.
func (n *node) get(path string) (code int, body string) {
	n.t.Helper()
	resp, err := http.Get("http://" + n.admin + path)
	if err != nil {
		n.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		n.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// waitFor asks the admin listener until it answers with code, and returns how
// long that took.
func (n *node) waitFor(path string, code int, bound time.Duration) time.Duration {
	n.t.Helper()
	began := time.Now()
	var got int
	var body string
	waitUntil(n.t, bound, func() bool {
		got, body = n.get(path)
		return got == code
	}, func() string { return path + " answers " + http.StatusText(got) + " " + body })
	return time.Since(began)
}

// metric is a value of /metrics, by its name with labels.
func (n *node) metric(name string) string {
	n.t.Helper()
	_, body := n.get("/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	n.t.Fatalf("no metric %s", name)
	return ""
}

// waitUntil asks again and again until done says so.
func waitUntil(t *testing.T, bound time.Duration, done func() bool, otherwise func() string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(bound)
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after %v: %s", bound, otherwise())
		}
	}
}
