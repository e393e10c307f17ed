package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/headgate-io/headgate/cmd/headgate/internal/load"
	"github.com/headgate-io/headgate/cmd/headgate/internal/output"
)

// What --wire may be, and where each is found when nobody says so.
const (
	wireHTTP    = "http"
	wireGRPC    = "grpc"
	defaultGRPC = "127.0.0.1:7777"
)

const benchLong = `Ask a running headgate whether invocations are allowed, many at a time, and
tell how many it answered, and how fast.

Calls are charged as any other: apply a policy for the function first, or
nothing limits it. The accounts are bench-0, bench-1 and so on. One call of
bench-0 goes first, to see whether anybody answers: it is charged, and not part
of what is told. With --rate, calls that are late because answers are slow count
from when they were due.
An interrupt ends it early and shows what was measured.

Exit codes:
  0  every call was answered
  2  wrong usage, or calls without an answer`

const benchExample = `  headgate bench -c 16 --for 10s
  headgate bench --wire grpc --rate 5000 --accounts 1000 --for 1m -o json`

// benchFlags is what headgate bench is told.
type benchFlags struct {
	wire   string
	target load.Target
	plan   load.Plan
}

// report is a result and what it was measured on.
type report struct {
	Wire   string `json:"wire"`
	Server string `json:"server"`
	load.Result
}

func newBench(s streams) *cobra.Command {
	var b benchFlags
	var format output.Format
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure how fast a headgate answers",
		Long:    benchLong,
		Example: benchExample,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			r, err := b.run(ctx, s)
			if err != nil {
				return err
			}
			if err := format.Print(c.OutOrStdout(), r, func(w io.Writer) { tableOfBench(w, r) }); err != nil {
				return err
			}
			if r.Failed > 0 {
				return fmt.Errorf("%d calls were not answered, the first because: %s", r.Failed, r.Error)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&b.wire, "wire", wireHTTP, "`wire` to ask over: http (POST /v1/check) or grpc (NVCF)")
	f.StringVar(&b.target.Server, "server", "", "front door of a headgate, `host:port`; env "+checkServerEnv+" for http\n(default "+defaultHTTP+", over grpc "+defaultGRPC+")")
	f.IntVarP(&b.plan.Clients, "concurrency", "c", 8, "calls at a time")
	f.Float64Var(&b.plan.Rate, "rate", 0, "calls per second in all; 0 is as many as are answered")
	f.DurationVar(&b.plan.For, "for", 10*time.Second, "how long to call")
	f.IntVar(&b.plan.Accounts, "accounts", 1, "how many accounts call, in turn")
	f.StringVar(&b.target.Function, "function", "bench", "the function")
	f.StringVar(&b.target.Version, "version", "v1", "the function's version")
	f.DurationVar(&b.plan.Timeout, "timeout", time.Second, "how long to wait for one answer")
	// The flag is defined above.
	_ = cmd.RegisterFlagCompletionFunc("wire", cobra.FixedCompletions([]string{wireHTTP, wireGRPC}, cobra.ShellCompDirectiveNoFileComp))
	addOutput(cmd, &format)
	return cmd
}

// run asks once, so that a wrong address is told at once, and then as planned.
func (b *benchFlags) run(ctx context.Context, s streams) (r report, err error) {
	if err := b.plan.Validate(); err != nil {
		return r, err
	}
	asker, err := b.asker(s)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, asker.Close()) }()
	first, cancel := context.WithTimeout(ctx, b.plan.Timeout)
	defer cancel()
	if _, err := asker.Ask(first, "bench-0"); err != nil {
		return r, fmt.Errorf("ask %s: %w", b.target.Server, err)
	}
	return report{Wire: b.wire, Server: b.target.Server, Result: load.Run(ctx, asker, b.plan)}, nil
}

func (b *benchFlags) asker(s streams) (load.Asker, error) {
	b.target.Clients = b.plan.Clients
	switch b.wire {
	case wireHTTP:
		b.target.Server = cmp.Or(b.target.Server, s.env(checkServerEnv), defaultHTTP)
		return load.HTTP(b.target), nil
	case wireGRPC:
		b.target.Server = cmp.Or(b.target.Server, defaultGRPC)
		return load.GRPC(b.target)
	default:
		return nil, fmt.Errorf("--wire %q: must be %s or %s", b.wire, wireHTTP, wireGRPC)
	}
}

func tableOfBench(w io.Writer, r report) {
	output.Row(w, "server", r.Server+" over "+r.Wire)
	output.Row(w, "calls", fmt.Sprintf("%d in %s", r.Calls, seconds(r.Seconds)))
	output.Row(w, "answers", fmt.Sprintf("%.0f/s", r.Rate))
	output.Row(w, "allowed", r.Allowed)
	output.Row(w, "denied", r.Denied)
	if r.Wire == wireHTTP {
		output.Row(w, "degraded", r.Degraded)
	}
	output.Row(w, "failed", r.Failed)
	blank(w)
	output.Row(w, "LATENCY", "P50", "P90", "P99", "P99.9", "MAX")
	l := r.Latency
	output.Row(w, "", latency(l.P50), latency(l.P90), latency(l.P99), latency(l.P999), latency(l.Max))
}

// latency is a short span with three digits.
func latency(s float64) string {
	d := time.Duration(s * float64(time.Second))
	unit := time.Nanosecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}
