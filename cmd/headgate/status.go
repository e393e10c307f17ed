package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/cmd/headgate/internal/output"
	"github.com/headgate-io/headgate/invocation/admin"
)

func newStatus(s streams) *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show how the nodes and their store are doing",
		Args:  cobra.NoArgs,
	}
	server := adminFlags(cmd, s)
	cmd.RunE = func(c *cobra.Command, _ []string) error {
		ask, err := server.client()
		if err != nil {
			return err
		}
		st, err := ask.Status(c.Context())
		if err != nil {
			return err
		}
		return format.Print(c.OutOrStdout(), st, func(w io.Writer) { tableOfStatus(w, st) })
	}
	addOutput(cmd, &format)
	return cmd
}

func tableOfStatus(w io.Writer, s admin.Status) {
	output.Row(w, "node", s.Node)
	output.Row(w, "version", s.Version)
	output.Row(w, "phase", s.Phase)
	output.Row(w, "ready", output.YesNo(s.Ready))
	output.Row(w, "degraded", output.YesNo(s.Degraded))
	output.Row(w, "unsettled", fmt.Sprintf("%d units", s.Unsettled))
	output.Row(w, "policies", s.Policies)
	output.Row(w, "counters", counted(s.Counters))

	blank(w)
	output.Row(w, "NODE", "PHASE", "VERSION", "UPTIME", "CLOCK OFFSET")
	for _, n := range s.Nodes {
		output.Row(w, n.Name, phaseOf(n), n.Version, seconds(n.Uptime), offset(n.Offset))
	}
	blank(w)
	output.Row(w, "BUCKET", "LEADER", "RECORDS", "BYTES", "REPLICA", "STATE")
	for _, b := range s.Buckets {
		rowsOfBucket(w, b, s.Counters != nil)
	}
}

// phaseOf is what a node last said that it does, if that may still be so.
func phaseOf(n admin.Node) string {
	if n.Alive {
		return n.Phase
	}
	return "silent for " + seconds(n.Silent)
}

// rowsOfBucket shows what the store told of a bucket. When it did not tell all,
// a bucket without a leader may be one of which it told nothing.
func rowsOfBucket(w io.Writer, b admin.Bucket, toldAll bool) {
	if !toldAll && b.Leader == "" && len(b.Replicas) == 0 {
		output.Row(w, b.Name, "-", "-", "-", "-", unasked)
		return
	}
	head := []any{b.Name, orDash(b.Leader), b.Records, b.Bytes}
	if len(b.Replicas) == 0 {
		output.Row(w, append(head, "-", "-")...)
		return
	}
	for _, r := range b.Replicas {
		output.Row(w, append(head, r.Name, replicaState(r))...)
		head = []any{"", "", "", ""}
	}
}

func replicaState(r admin.Replica) string {
	switch {
	case r.Offline:
		return "offline"
	case !r.Current:
		return fmt.Sprintf("behind by %d", r.Lag)
	default:
		return "current"
	}
}

// unasked stands for what only the store could tell.
const unasked = "unknown: the store cannot be asked"

func counted(n *int64) string {
	if n == nil {
		return unasked
	}
	return fmt.Sprint(*n)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// offset is a small span in either direction.
func offset(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(10 * time.Microsecond).String()
}

// blank ends the columns above.
func blank(w io.Writer) { output.Row(w) }
