package main

import (
	"cmp"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/cmd/headgate/internal/config"
	"github.com/headgate-io/headgate/cmd/headgate/internal/daemon"
)

const serveLong = `Run a headgate node until SIGINT or SIGTERM.

Configuration comes from, strongest first: flags, the environment, the file
given with --config (or HEADGATE_CONFIG), defaults. Every key of the file has a
name in the environment: nats.tls.caFile is HEADGATE_NATS_TLS_CA_FILE. Unknown
keys are errors. --print-config shows the whole, as a file, without secrets.

The node serves once its store is reached; until then it answers UNAVAILABLE or
503 and keeps trying. One signal lets it leave gracefully: it says that it is
not ready, serves on for drain.notice, closes its front doors within
drain.grace, settles what it owes within settle.timeout and leaves the store. A
second signal goes to settlement at once.

Exit codes:
  0  stopped, and everything was settled
  1  stopped, and something stayed unsettled
  2  wrong usage or configuration, or it could not start`

func newServe(s streams) *cobra.Command {
	var file string
	var printOnly bool
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Run a node",
		Long:    serveLong,
		Example: "  headgate serve --policies policies.yaml\n  headgate serve --config headgate.yaml --nats-url nats://nats:4222",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			// From the first instant: until this, nothing was started.
			signals := make(chan os.Signal, 2)
			signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
			defer signal.Stop(signals)
			cfg, err := config.Load(config.Sources{
				File: cmp.Or(file, s.env("HEADGATE_CONFIG")), Environ: s.environ, Flags: c.Flags(),
			})
			if err != nil {
				return fmt.Errorf("configuration:\n%w", err)
			}
			if printOnly {
				return printConfig(c, cfg)
			}
			code, err := daemon.Run(c.Context(), cfg, daemon.ReadBuild(version), signals, newLogger(cfg.Log, s.err))
			if err != nil || code != exitOK {
				return &codeError{Code: code, Err: err}
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&file, "config", "", "YAML `file` with the configuration; env HEADGATE_CONFIG")
	config.AddFlags(f)
	f.BoolVar(&printOnly, "print-config", false, "print the configuration in force, without secrets, and exit")
	return cmd
}

func printConfig(c *cobra.Command, cfg config.Config) error {
	text, err := cfg.YAML()
	if err != nil {
		return fmt.Errorf("print configuration: %w", err)
	}
	_, err = c.OutOrStdout().Write(text)
	return err
}
