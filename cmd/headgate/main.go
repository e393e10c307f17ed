// Command headgate limits the invocations of serverless functions: the daemon
// that decides, and the commands that ask it.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Exit codes, as documented in --help.
const (
	exitOK     = 0
	exitDenied = 1 // check: denied; serve: something stayed unsettled
	exitError  = 2 // usage, configuration, or anything that went wrong
)

// codeError is an error with its exit code. A nil Err was told already, or is
// an answer and not an error.
type codeError struct {
	Code int
	Err  error
}

func (e *codeError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *codeError) Unwrap() error { return e.Err }

// streams is what a command reads, writes and sees of the world.
type streams struct {
	in      io.Reader
	out     io.Writer
	err     *os.File // logs; whether it is a terminal decides how they look
	environ []string
}

// env is a variable's value; empty when it is not set.
func (s streams) env(name string) string {
	for _, entry := range s.environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr, os.Environ()}))
}

func run(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	code, told := exitError, error(nil)
	var coded *codeError
	if errors.As(err, &coded) {
		code, told = coded.Code, coded.Err
	} else {
		told = err
	}
	tell(s.err, told)
	return code
}

// tell writes every part of joined errors on a line of its own.
func tell(w io.Writer, err error) {
	if err == nil {
		return
	}
	for line := range strings.Lines(err.Error()) {
		// Nobody can be told that standard error is closed.
		_, _ = fmt.Fprintln(w, "headgate: "+strings.TrimRight(line, "\n"))
	}
}
