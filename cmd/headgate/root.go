package main

import (
	"github.com/spf13/cobra"
)

const exitCodes = `Exit codes:
  0  done; check: the invocation is allowed
  1  check: denied; serve: something stayed unsettled at shutdown;
     policy diff and policy test: something would change
  2  wrong usage or configuration, or an error`

const rootLong = `Headgate limits the invocations of serverless functions.

Its counters live in a replicated NATS JetStream bucket, so a limit holds
across every node, every restart and every rollout.

` + exitCodes

func newRoot(s streams) *cobra.Command {
	root := &cobra.Command{
		Use:           "headgate",
		Short:         "Limits the invocations of serverless functions",
		Long:          rootLong,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.AddCommand(newServe(s), newCheck(s), newPolicy(s), newCounter(s), newStatus(s), newBench(s), newVersion())
	return root
}
