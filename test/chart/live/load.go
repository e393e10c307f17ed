package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// loadReport is what callers saw while something went on.
type loadReport struct {
	calls      int
	failures   []string
	leastReady int // of the pods that the Service named
}

// Load of callers that follow the Service as a client with a little lag does.
const (
	callEvery   = 20 * time.Millisecond
	lookUpEvery = 300 * time.Millisecond
)

// offer calls the pods that the Service names, in turn, until ctx ends. No such
// call may fail.
func (t *trial) offer(ctx context.Context) loadReport {
	seen := loadReport{leastReady: replicas}
	var ready []string
	lookUp, call := time.NewTicker(lookUpEvery), time.NewTicker(callEvery)
	defer lookUp.Stop()
	defer call.Stop()
	for {
		if ready == nil || due(lookUp.C) {
			found, err := t.endpoints(ctx)
			if ctx.Err() != nil {
				return seen
			}
			if err != nil {
				seen.failures = append(seen.failures, err.Error())
				continue
			}
			ready, seen.leastReady = found, min(seen.leastReady, len(found))
		}
		select {
		case <-ctx.Done():
			return seen
		case <-call.C:
		}
		if len(ready) == 0 {
			seen.failures = append(seen.failures, "the Service names no pod")
			continue
		}
		ip := ready[seen.calls%len(ready)]
		a, err := check(ctx, ip, busy, "caller", 1)
		if ctx.Err() != nil {
			return seen
		}
		seen.calls++
		if err != nil || !a.Allowed {
			seen.failures = append(seen.failures, fmt.Sprintf("%s: %+v, %v", ip, a, err))
		}
	}
}

func due(c <-chan time.Time) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// rollByUpgrade changes the pod template and waits for the end of the roll.
func (t *trial) rollByUpgrade(ctx context.Context, _ []corev1.Pod) error {
	if err := t.upgrade(ctx, t.annotated()); err != nil {
		return err
	}
	return t.rolled(ctx)
}

// reinstall uninstalls the release and installs it again on what was left.
func (t *trial) reinstall(ctx context.Context, _ []corev1.Pod) error {
	if _, _, err := t.uninstall(ctx); err != nil {
		return err
	}
	return t.install(ctx, t.values(tenPerHour))
}
