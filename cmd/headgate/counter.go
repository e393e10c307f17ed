package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/headgate-io/headgate/cmd/headgate/internal/client"
	"github.com/headgate-io/headgate/cmd/headgate/internal/output"
	"github.com/headgate-io/headgate/ratelimit"
)

const counterLong = `See and change what has been spent.

A counter is named by its key, as ls shows it, or by what an invocation is
counted under: --function with --account (and --subject), or with --tier total.
With --version it is found by the policy in force, also when nothing was spent
of it yet; without, all versions' counters that hold something are meant.
Subjects are stored as hashes: a subject can be asked for, and is never listed.`

const counterExample = `  headgate counter ls --function resize
  headgate counter get --function resize --account acme
  headgate counter reset --function resize --account acme
  headgate counter grant --function resize --tier total --units 100`

func newCounter(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "counter", Short: "See and change what has been spent", Long: counterLong, Example: counterExample,
		Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	server := adminFlags(cmd, s)
	cmd.AddCommand(newCounterList(server), newCounterGet(server), newCounterReset(server), newCounterGrant(server))
	return cmd
}

// queryFlags says which counters a command is about.
type queryFlags struct{ client.CounterQuery }

func (q *queryFlags) add(cmd *cobra.Command, server *serverFlags) {
	f := cmd.Flags()
	f.StringVar(&q.Function, "function", "", "the function")
	f.StringVar(&q.Version, "version", "", "the function's version")
	f.StringVar(&q.Tier, "tier", "", "subject, account or total; default any")
	f.StringVar(&q.Account, "account", "", "the account")
	f.StringVar(&q.Subject, "subject", "", "the individual caller, with --account")
	// Both flags are defined above.
	_ = cmd.RegisterFlagCompletionFunc("function", completeFunctions(server))
	_ = cmd.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions([]string{"subject", "account", "total"}, cobra.ShellCompDirectiveNoFileComp))
}

func newCounterList(server *serverFlags) *cobra.Command {
	var q queryFlags
	var format output.Format
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List counters: all, or those of a function or an account",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ask, err := server.client()
			if err != nil {
				return err
			}
			list, err := ask.Counters(c.Context(), q.CounterQuery)
			if err != nil {
				return err
			}
			if list.More {
				warn(c, []string{fmt.Sprintf("only the first %d are shown; --limit shows more", len(list.Counters))})
			}
			return format.Print(c.OutOrStdout(), list.Counters, func(w io.Writer) { tableOfCounters(w, list.Counters) })
		},
	}
	q.add(cmd, server)
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "show at most so many; default 100, at most 1000")
	addOutput(cmd, &format)
	return cmd
}

func tableOfCounters(w io.Writer, list []client.Counter) {
	output.Row(w, "FUNCTION", "VERSION", "TIER", "IDENTITY", "RATE", "SPENT", "REMAINING", "NEXT UNIT", "FULL IN", "KEY")
	for _, c := range list {
		head := []any{c.Function, c.Version, c.Tier, orDash(c.Identity)}
		if !c.InForce {
			output.Row(w, append(head, "no policy in force", "-", "-", "-", "-", c.Key)...)
		}
		for _, l := range c.Limits {
			output.Row(w, append(slices.Clone(head), l.Rate, l.Spent, l.Remaining, next(l), seconds(l.FullIn), c.Key)...)
		}
	}
}

func next(l client.Limit) string {
	switch {
	case l.NextUnit == nil:
		return "never"
	case *l.NextUnit == 0:
		return "now"
	default:
		return seconds(*l.NextUnit)
	}
}

// act is what get, reset and grant have in common: find the counters, do
// something to each, show how they stand.
type act struct {
	use, short, long, example string

	// one: of the counters that an invocation is counted under it is about the
	// most specific that is named, and not about those of its whole function.
	one   bool
	flags func(*pflag.FlagSet)
	do    func(ctx context.Context, ask *client.Client, key string) (client.CounterDetail, error)
}

func (a act) command(server *serverFlags) *cobra.Command {
	var q queryFlags
	var format output.Format
	cmd := &cobra.Command{
		Use: a.use, Short: a.short, Long: a.long, Example: a.example, Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ask, err := server.client()
			if err != nil {
				return err
			}
			keys, err := keysOf(c.Context(), ask, args, a.narrow(q.CounterQuery))
			if err != nil {
				return err
			}
			details := []client.CounterDetail{}
			var failed error
			for _, key := range keys {
				d, err := a.do(c.Context(), ask, key)
				if err != nil {
					failed = fmt.Errorf("counter %s: %w", key, err)
					break
				}
				details = append(details, d)
			}
			if failed != nil && len(details) == 0 {
				return failed
			}
			err = format.Print(c.OutOrStdout(), details, func(w io.Writer) { tableOfDetails(w, details) })
			return errors.Join(err, failed)
		},
	}
	q.add(cmd, server)
	if a.flags != nil {
		a.flags(cmd.Flags())
	}
	addOutput(cmd, &format)
	return cmd
}

// narrow is q about one counter, where the command is.
func (a act) narrow(q client.CounterQuery) client.CounterQuery {
	switch {
	case !a.one || q.Tier != "":
	case q.Subject != "":
		q.Tier = "subject"
	case q.Account != "":
		q.Tier = "account"
	}
	return q
}

var (
	// errWhich: no counter, or too many, are named.
	errWhich = errors.New("name a counter by its key, or by --function with --account (and --subject) or --tier total")
	// errNone: no policy in force has such a counter.
	errNone = errors.New("no limit counts such invocations")
	// errUnspent: there may be one, but the store does not know it.
	errUnspent = errors.New("no such counter holds anything; name the --version to reach one of which nothing was spent")
)

// keysOf is the counters that a command is about: the one named by key, or
// those that one invocation is counted under.
func keysOf(ctx context.Context, ask *client.Client, args []string, q client.CounterQuery) ([]string, error) {
	byName := q != (client.CounterQuery{})
	if len(args) == 1 {
		if byName {
			return nil, errWhich
		}
		return args, nil
	}
	if q.Function == "" || (q.Account == "" && q.Tier != "total") {
		return nil, errWhich
	}
	list, err := ask.Counters(ctx, q)
	if err == nil && len(list.Counters) == 0 && q.Version == "" {
		// Nothing was spent: then it is the one that counts all versions, if
		// there is a policy for all.
		all := q
		all.Version = ratelimit.Any
		list, err = ask.Counters(ctx, all)
	}
	if err != nil {
		return nil, err
	}
	var keys []string
	for _, c := range list.Counters {
		keys = append(keys, c.Key)
	}
	switch {
	case len(keys) > 0:
		return keys, nil
	case q.Version == "":
		return nil, errUnspent
	default:
		return nil, errNone
	}
}

func tableOfDetails(w io.Writer, details []client.CounterDetail) {
	list := make([]client.Counter, len(details))
	leases := 0
	for i, d := range details {
		list[i] = d.Counter
		leases += len(d.Leases)
	}
	tableOfCounters(w, list)
	for _, d := range details {
		if len(d.Silent) > 0 {
			blank(w)
			output.Row(w, fmt.Sprintf("%s may hold leases and did not answer", strings.Join(d.Silent, ", ")))
			break // the others are asked at the same time
		}
	}
	if leases == 0 {
		return
	}
	blank(w)
	output.Row(w, "LEASED TO", "UNITS", "ENDS IN", "KEY")
	for _, d := range details {
		for _, l := range d.Leases {
			output.Row(w, l.Node, l.Units, seconds(l.Until), d.Key)
		}
	}
}

func newCounterGet(server *serverFlags) *cobra.Command {
	return act{
		use:     "get [KEY]",
		short:   "Show counters and who holds leases on them",
		long:    "Show counters and who holds leases on them. Leased units count as spent.",
		example: "  headgate counter get --function resize --version v1 --account acme",
		do: func(ctx context.Context, ask *client.Client, key string) (client.CounterDetail, error) {
			return ask.Counter(ctx, key)
		},
	}.command(server)
}

const resetLong = `Forget what was spent: leases are revoked on every node before it returns, and
the full budget is available again.

With --account the account's counter is reset, with --subject too the subject's
alone, with --tier total the whole function's.`

const grantLong = `Add units on top of the rates: to a sliding rate for one period, to a fixed one
until its window closes; a token bucket gets back at most what it owes. SPENT is
below zero while more was granted than spent.

With --account the account's counter is granted them, with --subject too the
subject's alone, with --tier total the whole function's.`

func newCounterReset(server *serverFlags) *cobra.Command {
	return act{
		use:     "reset [KEY]",
		short:   "Forget what was spent",
		long:    resetLong,
		example: "  headgate counter reset --function resize --account acme\n  headgate counter reset --function resize --tier total",
		one:     true,
		do: func(ctx context.Context, ask *client.Client, key string) (client.CounterDetail, error) {
			return ask.ResetCounter(ctx, key)
		},
	}.command(server)
}

func newCounterGrant(server *serverFlags) *cobra.Command {
	var units int64
	cmd := act{
		use:     "grant [KEY] --units N",
		short:   "Add units in the current window",
		long:    grantLong,
		example: "  headgate counter grant --function resize --version v1 --account acme --units 100",
		one:     true,
		flags: func(f *pflag.FlagSet) {
			f.Int64Var(&units, "units", 0, "how many units to add (required)")
		},
		do: func(ctx context.Context, ask *client.Client, key string) (client.CounterDetail, error) {
			return ask.GrantCounter(ctx, key, units)
		},
	}.command(server)
	_ = cmd.MarkFlagRequired("units") // the flag is defined above
	return cmd
}
