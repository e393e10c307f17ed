package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/cmd/headgate/internal/daemon"
	"github.com/headgate-io/headgate/cmd/headgate/internal/output"
)

// version is set by the linker for a release: -X main.version=v1.2.3.
var version string

func newVersion() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b := daemon.ReadBuild(version)
			return format.Print(c.OutOrStdout(), b, func(w io.Writer) {
				output.Row(w, "version", b.Version)
				output.Row(w, "revision", b.Revision)
				output.Row(w, "go", b.Go)
			})
		},
	}
	addOutput(cmd, &format)
	return cmd
}

// addOutput defines -o and completes its values.
func addOutput(cmd *cobra.Command, format *output.Format) {
	format.AddFlag(cmd.Flags())
	// It fails only for a flag that is not defined or completed twice.
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(output.Formats(), cobra.ShellCompDirectiveNoFileComp))
}
