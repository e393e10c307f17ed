package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installStep is the one without which nothing else can be tried.
const installStep = "helm install --wait"

func (t *trial) installing() []step {
	return []step{
		{"strict server-side validation of every ci file", t.validate},
		{installStep, func(ctx context.Context) (string, string, error) {
			return "installed", "installed", t.install(ctx, t.values(tenPerHour))
		}},
		{"helm test", func(ctx context.Context) (string, string, error) {
			_, err := t.kube.helmRun(ctx, "", "test", releaseName, "-n", t.namespace, "--timeout", "2m")
			return "one admission, one denial", "one admission, one denial", err
		}},
	}
}

func (t *trial) changing() []step {
	steps := []step{
		{"upgrade of a policy: in force on every pod, no restart", t.changePolicy},
		{"upgrade of the pod template under load: calls that failed", t.changeTemplate},
		t.row("upgrade of the pod template", t.rollByUpgrade),
		{"eviction: first passes, second is refused", t.evict},
		{"generated secrets after all upgrades", t.secretsStay},
	}
	if t.shape == "embedded" {
		steps = append(steps,
			step{"upgrade to one member is refused", t.refuseOne},
			t.row("helm uninstall and install again", t.reinstall))
	}
	if t.shape == "beside" {
		steps = append(steps, step{"turning the autoscaler on keeps the pods", t.autoscale})
	}
	return append(steps, step{"helm uninstall leaves", t.uninstall})
}

func (t *trial) install(ctx context.Context, values string) error {
	_, err := t.kube.helmRun(ctx, values, "install", releaseName, t.chart, "-n", t.namespace, "-f", "-", "--wait", "--timeout", "5m")
	return err
}

func (t *trial) upgrade(ctx context.Context, values string, flags ...string) error {
	args := append([]string{"upgrade", releaseName, t.chart, "-n", t.namespace, "-f", "-", "--timeout", "5m"}, flags...)
	_, err := t.kube.helmRun(ctx, values, args...)
	return err
}

// validate has the API server look at every object of every ci file.
func (t *trial) validate(ctx context.Context) (want, got string, err error) {
	files, err := filepath.Glob(filepath.Join(t.chart, "ci", "*-values.yaml"))
	if err != nil || len(files) == 0 {
		return "", "", fmt.Errorf("no ci files: %w", err)
	}
	var faults []error
	for _, file := range files {
		rendered, err := t.kube.helmRun(ctx, "", "template", "validated", t.chart, "-n", t.namespace, "-f", file)
		if err == nil {
			_, err = t.kube.ctl(ctx, rendered, "-n", t.namespace, "apply", "--dry-run=server", "--validate=strict", "-f", "-")
		}
		faults = append(faults, err)
	}
	all := fmt.Sprintf("%d files taken", len(files))
	return all, all, errors.Join(faults...)
}

// changePolicy raises a limit and asks every pod what it is.
func (t *trial) changePolicy(ctx context.Context) (want, got string, err error) {
	before, err := t.awaitReady(ctx, replicas)
	if err != nil {
		return "", "", err
	}
	want = "30 on every pod, none replaced or restarted"
	if err := t.upgrade(ctx, t.values(strings.Replace(tenPerHour, "10-H", "30-H", 1)), "--wait"); err != nil {
		return want, "", err
	}
	account := fmt.Sprintf("account-%d", time.Now().UnixNano())
	err = await(ctx, 2*time.Minute, func() error {
		for _, p := range before {
			a, err := check(ctx, p.Status.PodIP, limited, account, 0)
			if err != nil || a.Remaining == nil || *a.Remaining != 30 {
				return fmt.Errorf("%s: %+v, %w", p.Name, a, err)
			}
		}
		return nil
	})
	if err != nil {
		return want, "", err
	}
	after, err := t.awaitReady(ctx, replicas)
	if err != nil {
		return want, "", err
	}
	got = want
	if was, is := identities(before), identities(after); was != is {
		got = fmt.Sprintf("30 on every pod; were %s, are %s", was, is)
	}
	return want, got, t.upgrade(ctx, t.values(tenPerHour), "--wait")
}

// annotated are values whose pod template is another one each time.
func (t *trial) annotated() string {
	return t.values(tenPerHour, fmt.Sprintf("podAnnotations: {changed: 'at-%d'}", time.Now().UnixNano()))
}

// changeTemplate rolls the pods while callers ask those that the Service names.
func (t *trial) changeTemplate(ctx context.Context) (want, got string, err error) {
	want = fmt.Sprintf("none, and never fewer than %d pods ready", t.leastReady())
	if _, err := t.awaitReady(ctx, replicas); err != nil {
		return want, "", err
	}
	loaded, stop := context.WithCancel(ctx)
	load := make(chan loadReport, 1)
	go func() { load <- t.offer(loaded) }()
	err = errors.Join(t.upgrade(ctx, t.annotated()), t.rolled(ctx))
	stop()
	seen := <-load
	got = fmt.Sprintf("none, and never fewer than %d pods ready", seen.leastReady)
	if len(seen.failures) > 0 || seen.calls < 50 {
		got = fmt.Sprintf("%d of %d: %s", len(seen.failures), seen.calls, strings.Join(seen.failures[:min(3, len(seen.failures))], "; "))
	}
	return want, got, err
}

// evict asks for two pods to go; the budget lets one.
func (t *trial) evict(ctx context.Context) (want, got string, err error) {
	want = "201, 429"
	pods, err := t.awaitReady(ctx, replicas)
	if err != nil {
		return want, "", err
	}
	var codes []string
	for _, p := range pods[:2] {
		eviction := policyv1.Eviction{
			TypeMeta:   metav1.TypeMeta{APIVersion: "policy/v1", Kind: "Eviction"},
			ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: t.namespace},
		}
		status, answer, err := t.kube.post(ctx, "/api/v1/namespaces/"+t.namespace+"/pods/"+p.Name+"/eviction", eviction)
		if err != nil {
			return want, "", err
		}
		if status != http.StatusCreated && status != http.StatusTooManyRequests {
			return want, "", fmt.Errorf("eviction of %s: %d %s", p.Name, status, answer)
		}
		codes = append(codes, fmt.Sprint(status))
	}
	_, err = t.awaitReady(ctx, replicas)
	return want, strings.Join(codes, ", "), err
}

// secretsStay compares what was generated at the install with what is there.
func (t *trial) secretsStay(ctx context.Context) (want, got string, err error) {
	read := func() (string, error) {
		return t.kube.ctl(ctx, "", "-n", t.namespace, "get", "secret", "-l", "app.kubernetes.io/instance="+releaseName, "-o", "jsonpath={.items[*].data}")
	}
	before, err := read()
	if err != nil {
		return "", "", err
	}
	if err := t.upgrade(ctx, t.values(tenPerHour), "--wait"); err != nil {
		return "", "", err
	}
	after, err := read()
	if before != after || before == "" {
		return "the same", "others", err
	}
	return "the same", "the same", err
}

// autoscale hands the number of pods over to an autoscaler, and back.
func (t *trial) autoscale(ctx context.Context) (want, got string, err error) {
	before, err := t.awaitReady(ctx, replicas)
	if err != nil {
		return "", "", err
	}
	want = "the same pods"
	if err := t.upgrade(ctx, t.values(tenPerHour, "autoscaling: {enabled: true, minReplicas: 3, maxReplicas: 5}"), "--wait"); err != nil {
		return want, "", err
	}
	if _, err := t.kube.ctl(ctx, "", "-n", t.namespace, "get", "horizontalpodautoscaler/"+service); err != nil {
		return want, "", err
	}
	after, err := t.awaitReady(ctx, replicas)
	if err != nil {
		return want, "", err
	}
	got = want
	if was, is := identities(before), identities(after); was != is {
		got = fmt.Sprintf("were %s, are %s", was, is)
	}
	return want, got, t.upgrade(ctx, t.values(tenPerHour), "--wait")
}

func (t *trial) refuseOne(ctx context.Context) (want, got string, err error) {
	const why = "a member's store cannot become that of a server alone"
	err = t.upgrade(ctx, t.values(tenPerHour, "replicaCount: 1"))
	if err != nil && strings.Contains(err.Error(), why) {
		return why, why, nil
	}
	return why, "", err
}

// uninstall removes the release and looks at what is left.
func (t *trial) uninstall(ctx context.Context) (want, got string, err error) {
	left := []string{"secret/" + service + "-hash"}
	if t.shape == "embedded" {
		for i := range replicas {
			left = append(left, fmt.Sprintf("persistentvolumeclaim/data-%s-%d", service, i))
		}
	}
	slices.Sort(left)
	want = strings.Join(left, " ")
	if _, err := t.kube.helmRun(ctx, "", "uninstall", releaseName, "-n", t.namespace, "--wait"); err != nil {
		return want, "", err
	}
	err = await(ctx, 2*time.Minute, func() error {
		now, err := t.everything(ctx)
		if err != nil {
			return err
		}
		maps.DeleteFunc(now, func(name string, _ bool) bool { return t.before[name] || strings.HasPrefix(name, "lease") })
		got = strings.Join(slices.Sorted(maps.Keys(now)), " ")
		if got != want {
			return fmt.Errorf("left: %s", got)
		}
		return nil
	})
	return want, got, err
}
