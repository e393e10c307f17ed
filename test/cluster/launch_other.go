//go:build unix && !linux

package cluster

import (
	"os/exec"
	"syscall"
)

func dieWithUs() *syscall.SysProcAttr { return nil }

func launch(cmd *exec.Cmd) error { return cmd.Start() }
