package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"
)

// What a trial installs.
const (
	releaseName = "limiter"
	service     = releaseName + "-headgate" // and what else is named for the release
	limited     = "fn"                      // a function of ten invocations per hour
	busy        = "busy"                    // a function that is never at its limit
)

//go:embed nats.yaml
var natsManifest string

//go:embed podmonitor.yaml
var podMonitorDefinition string

// trial is one shape in a namespace of its own.
type trial struct {
	settings
	kube      *kube
	report    *report
	shape     string
	namespace string
	callers   int
	before    map[string]bool // what was in the namespace before the install
}

// values of the release; more are added to them.
func (t *trial) values(more ...string) string {
	all := []string{
		"insecure: true",
		"image: {repository: " + t.image + "}",
		"replicaCount: " + fmt.Sprint(replicas),
		"config: {limiter: {attempt: 1s}}", // counting must not depend on how fast this machine is
	}
	if t.shape == "beside" {
		all = append(all, "nats: {url: 'nats://nats:4222'}")
	}
	return strings.Join(append(all, more...), "\n") + "\n"
}

const tenPerHour = `policies: [{function: fn, account: {rates: "10-H"}}, {function: busy, account: {rates: "100000-S"}}]`

// step is one thing to try.
type step struct {
	name string
	do   func(context.Context) (want, got string, err error)
}

func (t *trial) run(ctx context.Context) error {
	if err := t.prepare(ctx); err != nil {
		return err
	}
	if !t.keep {
		defer t.remove()
	}
	steps := append(t.installing(), t.table()...)
	steps = append(steps, t.changing()...)
	for _, s := range steps {
		essential := s.name == installStep || strings.HasPrefix(s.name, "helm uninstall")
		if !essential && !strings.Contains(s.name, t.rows) {
			continue
		}
		began := time.Now()
		want, got, err := s.do(ctx)
		if err != nil {
			got = strings.TrimSpace(got + " " + err.Error())
		}
		t.report.add(t.shape, s.name, want, got, err == nil && want == got, time.Since(began))
		if s.name == installStep && err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// prepare makes the namespace, and NATS where the shape wants one beside.
func (t *trial) prepare(ctx context.Context) error {
	if _, err := t.kube.ctl(ctx, "", "create", "namespace", t.namespace); err != nil {
		return err
	}
	if _, err := t.kube.ctl(ctx, podMonitorDefinition, "apply", "-f", "-"); err != nil {
		return err
	}
	if t.shape == "beside" {
		manifest := strings.ReplaceAll(natsManifest, "IMAGE", t.natsImage)
		if _, err := t.kube.ctl(ctx, manifest, "-n", t.namespace, "apply", "-f", "-"); err != nil {
			return err
		}
		if _, err := t.kube.ctl(ctx, "", "-n", t.namespace, "rollout", "status", "statefulset/nats", "--timeout=3m"); err != nil {
			return err
		}
	}
	// The controllers put their own things into a new namespace.
	err := await(ctx, time.Minute, func() error {
		_, err := t.kube.ctl(ctx, "", "-n", t.namespace, "get", "serviceaccount/default", "configmap/kube-root-ca.crt")
		return err
	})
	if err != nil {
		return err
	}
	t.before, err = t.everything(ctx)
	return err
}

// remove removes the namespace; what comes of it is for whoever looks next.
func (t *trial) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if _, err := t.kube.ctl(ctx, "", "delete", "namespace", t.namespace, "--wait=false"); err != nil {
		t.report.add(t.shape, "remove the namespace", "removed", err.Error(), false, 0)
	}
}

// everything is what the namespace holds, but for events.
func (t *trial) everything(ctx context.Context) (map[string]bool, error) {
	kinds, err := t.kube.ctl(ctx, "", "api-resources", "--verbs=list", "--namespaced", "-o", "name")
	if err != nil {
		return nil, err
	}
	var wanted []string
	for _, kind := range strings.Fields(kinds) {
		if !strings.HasPrefix(kind, "events") {
			wanted = append(wanted, kind)
		}
	}
	out, err := t.kube.ctl(ctx, "", "-n", t.namespace, "get", strings.Join(wanted, ","), "-o", "name", "--ignore-not-found")
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, name := range strings.Fields(out) {
		found[name] = true
	}
	return found, nil
}
