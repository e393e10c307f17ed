package chart

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// process is the program of one pod, over all its lives.
type process struct {
	t         testing.TB
	name      string
	log       string // the file it logs to
	args, env []string

	mu      sync.Mutex
	cmd     *exec.Cmd
	ended   chan struct{} // closed when cmd is done
	expects bool          // the end was asked for
}

// newProcess prepares the program; it ends with the test.
func newProcess(t testing.TB, name, log string, args, env []string) *process {
	t.Helper()
	p := &process{t: t, name: name, log: log, args: args, env: env}
	t.Cleanup(func() {
		if p.cmd != nil {
			p.kill()
		}
		if !t.Failed() {
			return
		}
		const enough = 4000
		text, _ := os.ReadFile(log) // a process that never started has none
		t.Logf("--- the end of the log of %s:\n%s", name, text[len(text)-min(len(text), enough):])
	})
	return p
}

func (p *process) start() {
	p.t.Helper()
	out, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(cluster.Binary(p.t), p.args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, out, out
	if err := launch(cmd); err != nil {
		p.t.Fatal(err)
	}
	ended := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd, p.ended, p.expects = cmd, ended, false
	go p.await(cmd, ended)
}

// await notes the end; one that nobody asked for fails the test.
func (p *process) await(cmd *exec.Cmd, ended chan struct{}) {
	defer close(ended)
	err := cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.expects {
		p.t.Errorf("%s ended by itself: %v", p.name, err)
	}
}

// end signals the process and waits until it is gone, or until the bound, when
// it is killed. It returns the exit code and how long that took.
func (p *process) end(s syscall.Signal, bound time.Duration) (code int, took time.Duration) {
	p.t.Helper()
	began := time.Now()
	p.mu.Lock()
	p.expects = true
	cmd, ended := p.cmd, p.ended
	p.mu.Unlock()
	_ = cmd.Process.Signal(s) // gone already is as good
	late := time.NewTimer(bound)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		_ = cmd.Process.Kill()
		<-ended
	}
	return cmd.ProcessState.ExitCode(), time.Since(began)
}

func (p *process) kill() {
	p.t.Helper()
	p.end(syscall.SIGKILL, time.Minute)
}

// addresses are n loopback addresses that no other test of this machine has:
// who listens on the first one's lock port owns the range.
func addresses(t testing.TB, n int) []string {
	t.Helper()
	const (
		lockPort = 6000
		tries    = 100
	)
	var err error
	for range tries {
		prefix := fmt.Sprintf("127.%d.%d", 1+rand.IntN(254), rand.IntN(255))
		var lock net.Listener
		if lock, err = net.Listen("tcp", fmt.Sprintf("%s.1:%d", prefix, lockPort)); err != nil {
			continue
		}
		t.Cleanup(func() { lock.Close() })
		found := make([]string, n)
		for i := range found {
			found[i] = fmt.Sprintf("%s.%d", prefix, 11+i)
		}
		return found
	}
	t.Fatalf("no loopback addresses: %v", err)
	return nil
}
