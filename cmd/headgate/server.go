package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/headgate-io/headgate/cmd/headgate/internal/client"
)

// Where a server is found when nobody says so, and the variables that say so.
const (
	defaultHTTP    = "127.0.0.1:7778"
	defaultAdmin   = "127.0.0.1:7776"
	checkServerEnv = "HEADGATE_CHECK_SERVER"
	adminServerEnv = "HEADGATE_SERVER"
)

// serverFlags is which server a command asks, and for how long.
type serverFlags struct {
	address string
	timeout time.Duration
}

// add defines the flags. fromEnv is the value of the variable env; a flag is
// stronger.
func (f *serverFlags) add(set *pflag.FlagSet, fromEnv, env, fallback, what string) {
	set.StringVar(&f.address, "server", cmp.Or(fromEnv, fallback),
		fmt.Sprintf("%s of a headgate, `host:port` or URL; env %s", what, env))
	set.DurationVar(&f.timeout, "timeout", client.DefaultTimeout, "how long to wait for an answer")
}

func (f *serverFlags) client() (*client.Client, error) { return client.New(f.address, f.timeout) }
