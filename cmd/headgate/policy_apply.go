package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/cmd/headgate/internal/client"
	"github.com/headgate-io/headgate/cmd/headgate/internal/output"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

const applyLong = `Write policies into the store, where every node sees them within a second.

All files are checked before the first policy is written. Applying the same
again changes nothing. --revision lets one policy be written only if it has not
been changed since it was read; 0 means that there must be none yet.

Exit code 2 when something could not be applied; what was applied before it is
told and stays.`

// change is one policy's change and how it is told.
type change struct {
	client.Change
	Result string `json:"result"` // created, changed, unchanged; would be …
}

func newPolicyApply(s streams, server *serverFlags) *cobra.Command {
	var files fileFlags
	var format output.Format
	var write client.Write
	cmd := &cobra.Command{
		Use:     "apply -f FILE",
		Short:   "Write policies into the store",
		Long:    applyLong,
		Example: "  headgate policy apply -f policies.yaml --dry-run\n  headgate policy get resize -o yaml | sed s/10-S/20-S/ | headgate policy apply -f -",
		Args:    filesAreFlags,
		RunE: func(c *cobra.Command, _ []string) error {
			docs, err := files.read(s.in)
			warn(c, docs.warnings)
			if err != nil {
				return err
			}
			if write.Revision != "" && len(docs.policies) != 1 {
				return fmt.Errorf("--revision is for one policy, the files hold %d", len(docs.policies))
			}
			changes, failed := apply(c, server, docs.policies, write)
			if failed != nil && len(changes) == 0 {
				return failed
			}
			err = format.Print(c.OutOrStdout(), changes, func(w io.Writer) { tableOfChanges(w, changes, write.DryRun) })
			return errors.Join(err, failed)
		},
	}
	files.add(cmd)
	cmd.Flags().BoolVar(&write.DryRun, "dry-run", false, "only show what would change")
	cmd.Flags().StringVar(&write.Revision, "revision", "", "only if the policy has this revision; 0: only if there is none")
	addOutput(cmd, &format)
	return cmd
}

// apply writes one policy after the other until one fails.
func apply(c *cobra.Command, server *serverFlags, policies []*ratelimit.Policy, write client.Write) ([]change, error) {
	ask, err := server.client()
	if err != nil {
		return nil, err
	}
	changes := []change{}
	for _, p := range policies {
		write.Function, write.Version = p.Function, p.Version
		if write.Document, err = policy.EncodeJSON(p); err != nil {
			return changes, err
		}
		made, err := ask.PutPolicy(c.Context(), write)
		if err != nil {
			return changes, about(p.Function, p.Version, explain(err))
		}
		for _, w := range made.Warnings {
			if w.Line == 0 { // the others were told when the file was read
				warn(c, []string{fmt.Sprintf("policy %s, version %s: %s", p.Function, p.Version, lead(w.Path)+w.Reason)})
			}
		}
		changes = append(changes, change{made, result(made)})
	}
	return changes, nil
}

// explain adds to a conflict what to do about it.
func explain(err error) error {
	var p *client.Problem
	if errors.As(err, &p) && p.Status == http.StatusConflict {
		return fmt.Errorf("not applied, it was changed since it was read: %w", err)
	}
	return err
}

func result(c client.Change) string {
	word := "unchanged"
	switch {
	case !c.Changed:
		return word
	case isNone(c.Before):
		word = "created"
	default:
		word = "changed"
	}
	if c.DryRun {
		return "would be " + word
	}
	return word
}

func isNone(doc []byte) bool { return len(doc) == 0 || string(doc) == "null" }

// tableOfChanges adds to what would change how it would.
func tableOfChanges(w io.Writer, changes []change, dryRun bool) {
	output.Row(w, "FUNCTION", "VERSION", "RESULT", "REVISION")
	for _, c := range changes {
		output.Row(w, c.Function, c.Version, c.Result, orDash(c.Revision))
	}
	if diff, err := diffOf(changes); dryRun && err == nil && len(diff) > 0 {
		blank(w)
		listDiff(w, diff)
	}
}

const diffLong = `Show what applying files would change, field by field.

Exit codes:
  0  nothing would change
  1  something would
  2  wrong usage, or an error`

func newPolicyDiff(s streams, server *serverFlags) *cobra.Command {
	var files fileFlags
	var format output.Format
	cmd := &cobra.Command{
		Use:     "diff -f FILE",
		Short:   "Show what applying would change",
		Long:    diffLong,
		Example: "  headgate policy diff -f policies.yaml",
		Args:    filesAreFlags,
		RunE: func(c *cobra.Command, _ []string) error {
			docs, err := files.read(s.in)
			warn(c, docs.warnings)
			if err != nil {
				return err
			}
			made, err := apply(c, server, docs.policies, client.Write{DryRun: true})
			if err != nil {
				return err
			}
			diff, err := diffOf(made)
			if err != nil {
				return err
			}
			if err := format.Print(c.OutOrStdout(), diff, func(w io.Writer) { listDiff(w, diff) }); err != nil {
				return err
			}
			if len(diff) > 0 {
				return &codeError{Code: exitDenied}
			}
			return nil
		},
	}
	files.add(cmd)
	addOutput(cmd, &format)
	return cmd
}

// diffOf is what the changes change.
func diffOf(changes []change) ([]policy.Change, error) {
	var before, after []*ratelimit.Policy
	for _, c := range changes {
		for _, side := range []struct {
			doc  []byte
			into *[]*ratelimit.Policy
		}{{c.Before, &before}, {c.After, &after}} {
			if isNone(side.doc) {
				continue
			}
			found, _, err := policy.Parse(side.doc)
			if err != nil {
				return nil, about(c.Function, c.Version, fmt.Errorf("the server's policy is not understood: %w", err))
			}
			*side.into = append(*side.into, found...)
		}
	}
	diff := policy.Diff(before, after)
	if diff == nil {
		diff = []policy.Change{} // a list for programs, if an empty one
	}
	return diff, nil
}

func listDiff(w io.Writer, diff []policy.Change) {
	for _, d := range diff {
		// The end of a table is flushed, which tells of errors.
		_, _ = io.WriteString(w, d.String())
	}
}
