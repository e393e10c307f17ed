// Command live tries the chart on a real control plane: installs it in both
// shapes, does to its pods what the first bug report did to its own, and counts.
//
//	export KUBECONFIG=…
//	go run ./test/chart/live -image headgate -nats-image nats
//
// It needs kubectl and helm, a cluster whose pods can be reached at their
// addresses from here, an image of this program and one of nats-server whose
// entry point is the server. Namespaces headgate-embedded and headgate-beside
// are made and removed. It prints what it saw as a table and exits with 1 when
// anything was not as it should be. The ordinary test run does not do this.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// settings are the command line.
type settings struct {
	kubectl, helm    string
	chart            string
	image, natsImage string
	shapes           string
	rows             string
	keep             bool
}

func main() {
	var s settings
	flag.StringVar(&s.kubectl, "kubectl", "kubectl", "the kubectl to use")
	flag.StringVar(&s.helm, "helm", "helm", "the helm to use")
	flag.StringVar(&s.chart, "chart", "helm/headgate", "the chart's folder")
	flag.StringVar(&s.image, "image", "headgate", "the repository of the image; its tag is the chart's appVersion")
	flag.StringVar(&s.natsImage, "nats-image", "nats", "the image of the NATS beside it")
	flag.StringVar(&s.shapes, "shapes", "embedded,beside", "which shapes to try")
	flag.StringVar(&s.rows, "rows", "", "only rows and checks whose name holds this")
	flag.BoolVar(&s.keep, "keep", false, "leave the namespaces")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	report := run(ctx, s)
	report.print(os.Stdout)
	if report.failed() {
		stop()
		os.Exit(1) //nolint:forbidigo // a program says by its exit code whether all was well
	}
}

// run tries every shape that was asked for.
func run(ctx context.Context, s settings) *report {
	r := &report{}
	k, err := newKube(ctx, s)
	if err != nil {
		r.add("control plane", "", "reached", err.Error(), false, 0)
		return r
	}
	defer k.close()
	for _, shape := range strings.Split(s.shapes, ",") {
		t := &trial{settings: s, kube: k, report: r, shape: shape, namespace: "headgate-" + shape}
		if err := t.run(ctx); err != nil {
			r.add(shape, "trial", "ends", err.Error(), false, 0)
		}
	}
	return r
}

// result is one thing that was looked at.
type result struct {
	shape, name, want, got string
	ok                     bool
	took                   time.Duration
}

// report is all of them, in order.
type report struct{ results []result }

func (r *report) add(shape, name, want, got string, ok bool, took time.Duration) {
	r.results = append(r.results, result{shape, name, want, got, ok, took})
	fmt.Fprintf(os.Stderr, "%s  %-9s %-60s want %s, got %s  (%v)  %s\n",
		time.Now().Format(time.TimeOnly), shape, name, want, got, took.Round(100*time.Millisecond), verdict(ok))
}

func verdict(ok bool) string {
	if ok {
		return "ok"
	}
	return "WRONG"
}

func (r *report) failed() bool {
	for _, one := range r.results {
		if !one.ok {
			return true
		}
	}
	return len(r.results) == 0
}

// print writes the table.
func (r *report) print(w *os.File) {
	fmt.Fprintln(w, "| shape | what | right | seen | |\n|---|---|---|---|---|")
	for _, one := range r.results {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s |\n", one.shape, one.name, one.want, strings.ReplaceAll(one.got, "\n", " "), verdict(one.ok))
	}
}
