package cluster

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopBound is the longest that a process may take to end after SIGTERM.
const stopBound = 40 * time.Second

// process is one program that can be started, signalled and started again. Its
// methods may be called concurrently.
type process struct {
	*reporter

	name string
	path string
	args []string
	env  []string
	log  *logbook

	mu      sync.Mutex
	cmd     *exec.Cmd     // nil before the first start
	ended   chan struct{} // closed when cmd is done
	code    int           // of the last end; -1 by a signal
	expects bool          // the end was asked for
}

// start runs the program. It must not be running.
func (p *process) start() {
	p.tb().Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running() {
		p.tb().Fatalf("%s is running already", p.name)
	}
	cmd := exec.Command(p.path, p.args...)
	cmd.Env = append(foreignEnvironment(), p.env...)
	cmd.Stdout, cmd.Stderr = p.log.file, p.log.file
	cmd.SysProcAttr = dieWithUs()
	if err := launch(cmd); err != nil {
		p.tb().Fatalf("start %s: %v", p.name, err)
	}
	ended := make(chan struct{})
	p.cmd, p.ended, p.expects = cmd, ended, false
	go p.await(cmd, ended)
}

// await notes how the program ended. An end that nobody asked for fails the
// test.
func (p *process) await(cmd *exec.Cmd, ended chan struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.code = cmd.ProcessState.ExitCode()
	if !p.expects {
		p.tb().Errorf("%s ended by itself: %v", p.name, err)
	}
	close(ended)
}

// running is called with the lock held.
func (p *process) running() bool {
	if p.cmd == nil {
		return false
	}
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

func (p *process) isRunning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running()
}

// signal sends a signal that the program survives.
func (p *process) signal(s syscall.Signal) {
	p.tb().Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.running() {
		p.tb().Errorf("%v to %s, which is not running", s, p.name)
		return
	}
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.tb().Errorf("%v to %s: %v", s, p.name, err)
	}
}

// end sends a signal that ends the program. What is not running is let be.
func (p *process) end(s syscall.Signal) {
	p.tb().Helper()
	p.mu.Lock()
	p.expects = true
	running := p.running()
	p.mu.Unlock()
	if running {
		p.signal(s)
	}
}

// wait waits for the end and returns the exit code, -1 after a signal. One that
// overruns the bound is killed and fails the test.
func (p *process) wait() int {
	p.tb().Helper()
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	if ended == nil {
		return 0
	}
	patience := time.NewTimer(stopBound)
	defer patience.Stop()
	select {
	case <-ended:
	case <-patience.C:
		p.tb().Errorf("%s did not end within %v", p.name, stopBound)
		p.end(syscall.SIGKILL)
		<-ended
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code
}

// kill ends the program at once; a frozen one too.
func (p *process) kill() {
	p.tb().Helper()
	p.end(syscall.SIGKILL)
	p.wait()
}

// newProcess prepares a program that logs to a folder of the cluster and ends
// with it.
func newProcess(c *Cluster, name, path string, args, env []string) *process {
	c.root.Helper()
	log, err := newLogbook(filepath.Join(c.dir, name+".log"))
	if err != nil {
		c.root.Fatal(err)
	}
	p := &process{reporter: c.reporter, name: name, path: path, args: args, env: env, log: log}
	c.root.Cleanup(func() {
		p.kill()
		if err := log.close(); err != nil {
			c.root.Errorf("log of %s: %v", name, err)
		}
	})
	return p
}

// foreignEnvironment is ours without what a headgate would take for its
// configuration.
func foreignEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HEADGATE_") })
}
