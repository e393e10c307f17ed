package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// completeTimeout bounds what a shell waits for at the tab key.
const completeTimeout = 2 * time.Second

// completeFunctions completes the names of functions that have policies.
func completeFunctions(server *serverFlags) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		quick := serverFlags{address: server.address, timeout: completeTimeout}
		ask, err := quick.client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		list, err := ask.Policies(c.Context(), "", "")
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, p := range list {
			names = append(names, p.Function)
		}
		slices.Sort(names)
		return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
	}
}
