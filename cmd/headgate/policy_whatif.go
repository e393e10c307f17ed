package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/cmd/headgate/internal/output"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/replay"
)

const policyTestLong = `Replay recorded invocations in virtual time and tell who would have been denied,
when and by which rate, with the policies of the files and with those in force.

The files' policies take the place of those in force for the same function and
version, as applying them would do. Policies in force are asked of the server,
or read from --against. Those that the NVCF policy API holds are not known
before it is asked, and are left out.

The log holds one JSON object a line: time (RFC 3339, or seconds since 1970) and
function, and where they are known account, version, subject and cost.

Exit codes:
  0  nothing would be denied that is admitted now
  1  something would
  2  wrong usage, or an error`

// replayFlags is what a what-if is asked of.
type replayFlags struct {
	files   fileFlags
	against fileFlags
	log     string
	denials int
}

func newPolicyTest(s streams, server *serverFlags) *cobra.Command {
	var flags replayFlags
	var format output.Format
	cmd := &cobra.Command{
		Use:     "test -f FILE --log FILE",
		Short:   "Replay recorded invocations against policies",
		Long:    policyTestLong,
		Example: "  headgate policy test -f new.yaml --log requests.jsonl\n  headgate policy test -f new.yaml --against old.yaml --log requests.jsonl -o json",
		Args:    filesAreFlags,
		RunE: func(c *cobra.Command, _ []string) error {
			result, err := flags.run(c, s, server)
			if err != nil {
				return err
			}
			report := reportOf(result)
			if err := format.Print(c.OutOrStdout(), report, func(w io.Writer) { tableOfReport(w, report) }); err != nil {
				return err
			}
			if result.NewlyDenied > 0 {
				return &codeError{Code: exitDenied}
			}
			return nil
		},
	}
	flags.files.add(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&flags.against.paths, "against", nil, "policy `file` or directory to stand for those in force; may be repeated")
	f.StringVar(&flags.log, "log", "", "`file` with the recorded invocations, or - for standard input")
	f.IntVar(&flags.denials, "denials", 20, "show at most so many single denials")
	_ = cmd.MarkFlagRequired("log") // the flag is defined above
	addOutput(cmd, &format)
	return cmd
}

func (f *replayFlags) run(c *cobra.Command, s streams, server *serverFlags) (*replay.Result, error) {
	docs, err := f.files.read(s.in)
	warn(c, docs.warnings)
	if err != nil {
		return nil, err
	}
	inForce, err := f.inForce(c.Context(), s, server)
	if err != nil {
		return nil, err
	}
	log, closeLog, err := openLog(s, f.log)
	if err != nil {
		return nil, err
	}
	defer closeLog()
	cfg := replay.DefaultConfig()
	cfg.MaxDenials = max(0, f.denials)
	result, err := replay.Run(c.Context(), replay.Read(log),
		policy.NewFixed(replace(inForce, docs.policies)), policy.NewFixed(inForce), cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.log, err)
	}
	return result, nil
}

// inForce is the policies to compare with.
func (f *replayFlags) inForce(ctx context.Context, s streams, server *serverFlags) ([]*ratelimit.Policy, error) {
	if len(f.against.paths) > 0 {
		docs, err := f.against.read(s.in)
		return docs.policies, err
	}
	ask, err := server.client()
	if err != nil {
		return nil, err
	}
	list, err := ask.Policies(ctx, "", "")
	if err != nil {
		return nil, fmt.Errorf("policies in force (--against reads them from a file): %w", err)
	}
	var inForce []*ratelimit.Policy
	for _, p := range list {
		if p.OverruledBy != "" {
			continue
		}
		found, _, err := policy.Parse(p.Policy)
		if err != nil {
			return nil, about(p.Function, p.Version, fmt.Errorf("the server's policy is not understood: %w", err))
		}
		inForce = append(inForce, found...)
	}
	return inForce, nil
}

// replace is the policies in force with others in the place of those of the
// same function and version.
func replace(inForce, by []*ratelimit.Policy) []*ratelimit.Policy {
	replaced := make(map[[2]string]bool)
	for _, p := range by {
		replaced[[2]string{p.Function, p.Version}] = true
	}
	all := by[:len(by):len(by)]
	for _, p := range inForce {
		if !replaced[[2]string{p.Function, p.Version}] {
			all = append(all, p)
		}
	}
	return all
}

func openLog(s streams, path string) (log io.Reader, closeLog func(), err error) {
	if path == stdinName {
		return s.in, func() {}, nil
	}
	opened, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	if info, err := opened.Stat(); err == nil && info.IsDir() {
		return nil, nil, errors.Join(fmt.Errorf("%s: is a directory", path), opened.Close())
	}
	return opened, func() { _ = opened.Close() }, nil // it was only read
}
