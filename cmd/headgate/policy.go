package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/cmd/headgate/internal/client"
	"github.com/headgate-io/headgate/cmd/headgate/internal/output"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

const policyLong = `Read, check and change the policies that limit functions.

Policies that are applied here live in the store: a change is in force on every
node within a second. Policies that nodes read from files or from the NVCF
policy API are listed too, and are changed where they are written.

A policy is a document in YAML or JSON; a file may hold several. Only the
function is required; a tier that is left out limits nothing:

  function: resize           # "*" is every function
  version: "*"               # every version, counted together
  total: {rates: 5000-S}     # the whole function
  account:                   # each account
    rates: 10-S,1000-H       # units per S, M, H or D; or 100/30s
    overrides: {acme: 100-S}
    exclude: [probes]
  subject: {rates: 5-S}      # each caller of each account
  consistency: leased        # or exact, delayed
  onStoreFailure: local      # or allow, deny
  enforce: true              # false only counts and reports`

func newPolicy(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "policy", Short: "Read, check and change policies", Long: policyLong,
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	server := adminFlags(cmd, s)
	cmd.AddCommand(
		newPolicyValidate(s), newPolicyApply(s, server), newPolicyDiff(s, server),
		newPolicyGet(server), newPolicyList(server), newPolicyRemove(server), newPolicyTest(s, server),
	)
	return cmd
}

// adminFlags defines where the admin API is, for a command and those below it.
func adminFlags(cmd *cobra.Command, s streams) *serverFlags {
	server := &serverFlags{}
	server.add(cmd.PersistentFlags(), s.env(adminServerEnv), adminServerEnv, defaultAdmin, "admin listener")
	return server
}

func newPolicyValidate(s streams) *cobra.Command {
	var files fileFlags
	cmd := &cobra.Command{
		Use:     "validate -f FILE",
		Short:   "Check policy files without a server",
		Long:    "Check policy files without a server: every fault at once, with its place.\n\nExit code 2 when there is a fault; warnings are told and pass.",
		Example: "  headgate policy validate -f policies.yaml",
		Args:    filesAreFlags,
		RunE: func(c *cobra.Command, _ []string) error {
			docs, err := files.read(s.in)
			warn(c, docs.warnings)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%d valid\n", len(docs.policies))
			return err
		},
	}
	files.add(cmd)
	return cmd
}

// warn tells warnings beside the output.
func warn(c *cobra.Command, warnings []string) {
	for _, w := range warnings {
		// Nobody can be told that standard error is closed.
		_, _ = fmt.Fprintln(c.ErrOrStderr(), "warning: "+w)
	}
}

func newPolicyGet(server *serverFlags) *cobra.Command {
	var format output.Format
	var effective bool
	cmd := &cobra.Command{
		Use:   "get FUNCTION [VERSION]",
		Short: "Show one policy",
		Long: "Show the policy written for a function (\"*\" is every function) and one of its\n" +
			"versions (\"*\", the default, is every version); with --effective the one in force.\n\n" +
			"As YAML or JSON it is the document itself, fit for apply.",
		Example:           "  headgate policy get resize -o yaml > resize.yaml",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeFunctions(server),
		RunE: func(c *cobra.Command, args []string) error {
			ask, err := server.client()
			if err != nil {
				return err
			}
			p, err := ask.Policy(c.Context(), args[0], versionArg(args), effective)
			if err != nil {
				return about(args[0], versionArg(args), err)
			}
			return printPolicy(c.OutOrStdout(), format, p)
		},
	}
	cmd.Flags().BoolVar(&effective, "effective", false, "the policy in force for this function and version, wherever it is from")
	addOutput(cmd, &format)
	return cmd
}

// versionArg is the second argument; every version when there is none.
func versionArg(args []string) string {
	if len(args) > 1 {
		return args[1]
	}
	return ratelimit.Any
}

// about says which policy an error is about.
func about(function, version string, err error) error {
	return fmt.Errorf("policy %s, version %s: %w", function, version, err)
}

func printPolicy(w io.Writer, format output.Format, p client.Policy) error {
	if format == output.YAML {
		text, err := yamlOf(p.Policy)
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, text)
		return err
	}
	return format.Print(w, p.Policy, func(w io.Writer) { tableOfPolicy(w, p) })
}

func tableOfPolicy(w io.Writer, p client.Policy) {
	output.Row(w, "function", p.Function)
	output.Row(w, "version", p.Version)
	output.Row(w, "source", p.Source)
	output.Row(w, "revision", p.Revision)
	output.Row(w, "in force", inForce(p))
	text, err := yamlOf(p.Policy)
	if err != nil {
		text = err.Error() + "\n" // of a newer server; -o json shows it as it is
	}
	// The end of a table is flushed, which tells of errors.
	_, _ = io.WriteString(w, "\n"+text)
}

func inForce(p client.Policy) string {
	switch {
	case p.OverruledBy != "":
		return "no: " + p.OverruledBy + " is asked first"
	case p.Stale:
		return "yes, but its source cannot be asked now"
	default:
		return "yes"
	}
}

// yamlOf is a document as it is written by hand; nothing for none.
func yamlOf(doc json.RawMessage) (string, error) {
	if len(doc) == 0 || bytes.Equal(doc, []byte("null")) {
		return "", nil
	}
	policies, _, err := policy.Parse(doc)
	if err != nil {
		return "", fmt.Errorf("the server's policy is not understood: %w", err)
	}
	text, err := policy.EncodeYAML(policies...)
	return string(text), err
}

// policySources are the places that policies come from.
var policySources = []string{policy.File, policy.Bucket, policy.NVCF}

func newPolicyList(server *serverFlags) *cobra.Command {
	var format output.Format
	var function, source string
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List policies and where they come from",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if source != "" && !slices.Contains(policySources, source) {
				return fmt.Errorf("--source %q: must be one of %s", source, strings.Join(policySources, ", "))
			}
			ask, err := server.client()
			if err != nil {
				return err
			}
			list, err := ask.Policies(c.Context(), function, source)
			if err != nil {
				return err
			}
			return format.Print(c.OutOrStdout(), list, func(w io.Writer) { tableOfPolicies(w, list) })
		},
	}
	cmd.Flags().StringVar(&function, "function", "", "only those of this function")
	cmd.Flags().StringVar(&source, "source", "", "only those from this source: file, bucket or nvcf")
	// Both flags are defined above.
	_ = cmd.RegisterFlagCompletionFunc("function", completeFunctions(server))
	_ = cmd.RegisterFlagCompletionFunc("source", cobra.FixedCompletions(policySources, cobra.ShellCompDirectiveNoFileComp))
	addOutput(cmd, &format)
	return cmd
}

func tableOfPolicies(w io.Writer, list []client.Policy) {
	output.Row(w, "FUNCTION", "VERSION", "SOURCE", "REVISION", "IN FORCE", "LIMITS")
	for _, p := range list {
		output.Row(w, p.Function, p.Version, p.Source, p.Revision, inForce(p), limitsOf(p.Policy))
	}
}

func newPolicyRemove(server *serverFlags) *cobra.Command {
	var revision string
	cmd := &cobra.Command{
		Use:               "rm FUNCTION [VERSION]",
		Short:             "Remove a policy from the store",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeFunctions(server),
		RunE: func(c *cobra.Command, args []string) error {
			ask, err := server.client()
			if err != nil {
				return err
			}
			if err := ask.DeletePolicy(c.Context(), args[0], versionArg(args), revision); err != nil {
				return about(args[0], versionArg(args), err)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "policy %s, version %s: removed\n", args[0], versionArg(args))
			return err
		},
	}
	cmd.Flags().StringVar(&revision, "revision", "", "only if the policy has this revision")
	return cmd
}
