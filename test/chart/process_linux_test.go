package chart

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// launcher starts processes on one thread that lives as long as the test's
// process: the kernel ends them with the thread that started them.
var launcher = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// launch starts a command that does not outlive the test's process.
func launch(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	result := make(chan error)
	launcher() <- func() { result <- cmd.Start() }
	return <-result
}
