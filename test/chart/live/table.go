package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// table is the first bug report's own, row by row.
func (t *trial) table() []step {
	return []step{
		t.row("control", func(context.Context, []corev1.Pod) error { return nil }),
		t.row("graceful deletion of 1 pod", t.deleteSome(1)),
		t.row("graceful deletion of 2 pods", t.deleteSome(2)),
		t.row("graceful deletion of 3 pods", t.deleteSome(3)),
		t.row("rollout restart without traffic, twice", t.restartTwice),
		t.row("scale 3, 2, 3", t.scaleDownAndUp),
		t.row("forced deletion of 1 pod", t.deleteSome(1, "--grace-period=0", "--force")),
		t.row("forced deletion of all, one at a time", t.forceEach),
		t.row("forced deletion of all at once", t.deleteSome(3, "--grace-period=0", "--force")),
	}
}

// row is a fresh counter of ten: four are spent, something happens, and once
// every pod is back ten more are asked for. Ten in all are right.
func (t *trial) row(name string, perturb func(context.Context, []corev1.Pod) error) step {
	return step{name, func(ctx context.Context) (want, got string, err error) {
		want = "10 admitted"
		t.callers++
		account := fmt.Sprintf("account-%d-%d", time.Now().UnixNano(), t.callers)
		pods, err := t.awaitReady(ctx, replicas)
		if err != nil {
			return want, "", err
		}
		first, err := send(ctx, pods, account, 4)
		if err != nil {
			return want, "", err
		}
		if err := perturb(ctx, pods); err != nil {
			return want, "", err
		}
		if pods, err = t.awaitReady(ctx, replicas); err != nil {
			return want, "", err
		}
		more, err := send(ctx, pods, account, 10)
		return want, fmt.Sprintf("%d admitted", first+more), err
	}}
}

func (t *trial) deleteSome(n int, flags ...string) func(context.Context, []corev1.Pod) error {
	return func(ctx context.Context, pods []corev1.Pod) error {
		args := append([]string{"-n", t.namespace, "delete", "pod", "--wait=true"}, flags...)
		_, err := t.kube.ctl(ctx, "", append(args, names(pods)[:n]...)...)
		return err
	}
}

func (t *trial) forceEach(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if err := t.deleteSome(1, "--grace-period=0", "--force")(ctx, pods[i:]); err != nil {
			return err
		}
		if _, err := t.awaitReady(ctx, replicas); err != nil {
			return err
		}
	}
	return nil
}

// workload is what kubectl calls that which runs the pods.
func (t *trial) workload() string {
	if t.shape == "beside" {
		return "deployment/" + service
	}
	return "statefulset/" + service
}

func (t *trial) restartTwice(ctx context.Context, old []corev1.Pod) error {
	for range 2 {
		least, err := t.watching(ctx, func() error {
			if _, err := t.kube.ctl(ctx, "", "-n", t.namespace, "rollout", "restart", t.workload()); err != nil {
				return err
			}
			return t.rolled(ctx)
		})
		if err != nil {
			return err
		}
		if least < t.leastReady() {
			return fmt.Errorf("only %d pods were ready during the roll", least)
		}
		now, err := t.awaitReady(ctx, replicas)
		if err != nil {
			return err
		}
		for _, p := range now {
			if slices.ContainsFunc(old, func(o corev1.Pod) bool { return o.UID == p.UID }) {
				return fmt.Errorf("%s was not replaced", p.Name)
			}
		}
		old = now
	}
	return nil
}

// leastReady is how many pods are always ready during a roll: beside NATS one
// more is made first, members are replaced one at a time.
func (t *trial) leastReady() int {
	if t.shape == "beside" {
		return replicas
	}
	return replicas - 1
}

// watching does something and tells how few pods the Service named meanwhile.
func (t *trial) watching(ctx context.Context, do func() error) (least int, err error) {
	watched, stop := context.WithCancel(ctx)
	seen := make(chan int, 1)
	go func() {
		fewest := replicas
		tick := time.NewTicker(lookUpEvery)
		defer tick.Stop()
		for {
			select {
			case <-watched.Done():
				seen <- fewest
				return
			case <-tick.C:
			}
			if now, err := t.endpoints(watched); err == nil {
				fewest = min(fewest, len(now))
			}
		}
	}()
	err = do()
	stop()
	return <-seen, err
}

// rolled waits for the end of a rollout.
func (t *trial) rolled(ctx context.Context) error {
	_, err := t.kube.ctl(ctx, "", "-n", t.namespace, "rollout", "status", t.workload(), "--timeout=5m")
	return err
}

func (t *trial) scaleDownAndUp(ctx context.Context, _ []corev1.Pod) error {
	for _, n := range []int{replicas - 1, replicas} {
		if _, err := t.kube.ctl(ctx, "", "-n", t.namespace, "scale", t.workload(), fmt.Sprintf("--replicas=%d", n)); err != nil {
			return err
		}
		if _, err := t.awaitReady(ctx, n); err != nil {
			return err
		}
		if err := t.awaitGone(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// awaitGone waits until there are n pods, those on their way out included.
func (t *trial) awaitGone(ctx context.Context, n int) error {
	return await(ctx, readyBound, func() error {
		out, err := t.kube.ctl(ctx, "", "-n", t.namespace, "get", "pods", "-l", "app.kubernetes.io/name=headgate,app.kubernetes.io/component=node", "-o", "name")
		if err != nil {
			return err
		}
		if have := len(strings.Fields(out)); have != n {
			return fmt.Errorf("%d pods of %d", have, n)
		}
		return nil
	})
}
