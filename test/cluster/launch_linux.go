package cluster

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// dieWithUs makes the kernel end a process when the thread that started it is
// gone, as it is when the test's process was killed.
func dieWithUs() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// launcher starts processes on one thread that lives as long as the test's
// process: any other thread may end before, and its processes with it.
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

func launch(cmd *exec.Cmd) error {
	result := make(chan error)
	launcher() <- func() { result <- cmd.Start() }
	return <-result
}
