package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// replicas is how many pods every trial has.
const replicas = 3

// readyBound is the longest that pods may take to be ready again.
const readyBound = 3 * time.Minute

// pods are those of the release that are not on their way out, by name.
func (t *trial) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	path := "/api/v1/namespaces/" + t.namespace + "/pods?labelSelector=app.kubernetes.io/name=headgate,app.kubernetes.io/component=node"
	if err := t.kube.get(ctx, path, &list); err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods, nil
}

func isReady(p corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// awaitReady waits until there are want pods, all ready and none degraded, and
// returns them.
func (t *trial) awaitReady(ctx context.Context, want int) (pods []corev1.Pod, err error) {
	err = await(ctx, readyBound, func() error {
		if pods, err = t.pods(ctx); err != nil {
			return err
		}
		if len(pods) != want {
			return fmt.Errorf("%d pods of %d", len(pods), want)
		}
		for _, p := range pods {
			if !isReady(p) {
				return fmt.Errorf("%s is not ready", p.Name)
			}
			if err := sound(ctx, p.Status.PodIP); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
		return nil
	})
	return pods, err
}

// sound says what is wrong with a pod by its own account.
func sound(ctx context.Context, ip string) error {
	status, body, err := ask(ctx, http.MethodGet, "http://"+net.JoinHostPort(ip, "7776")+"/readyz", nil)
	if err != nil {
		return err
	}
	var state struct{ Degraded bool }
	if err := json.Unmarshal(body, &state); err != nil {
		return err
	}
	if status != http.StatusOK || state.Degraded {
		return fmt.Errorf("%d %s", status, body)
	}
	return nil
}

// names are those of the pods.
func names(pods []corev1.Pod) []string {
	var all []string
	for _, p := range pods {
		all = append(all, p.Name)
	}
	return all
}

// identities are the pods' uids and how often their containers were restarted:
// what stays when nothing was replaced.
func identities(pods []corev1.Pod) string {
	var all []string
	for _, p := range pods {
		restarts := int32(0)
		for _, c := range p.Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		all = append(all, fmt.Sprintf("%s %d", p.UID, restarts))
	}
	return strings.Join(all, ", ")
}

// endpoints are the addresses that the Service sends callers to now.
func (t *trial) endpoints(ctx context.Context) ([]string, error) {
	var slicesOf discoveryv1.EndpointSliceList
	path := "/apis/discovery.k8s.io/v1/namespaces/" + t.namespace + "/endpointslices?labelSelector=kubernetes.io/service-name=" + service
	if err := t.kube.get(ctx, path, &slicesOf); err != nil {
		return nil, err
	}
	var ready []string
	for _, s := range slicesOf.Items {
		for _, e := range s.Endpoints {
			if e.Conditions.Ready != nil && *e.Conditions.Ready {
				ready = append(ready, e.Addresses...)
			}
		}
	}
	return ready, nil
}

// answer is what a front door decides.
type answer struct {
	Allowed   bool   `json:"allowed"`
	Degraded  bool   `json:"degraded"`
	Remaining *int64 `json:"remaining"`
}

// check asks a pod for one invocation; cost 0 looks.
func check(ctx context.Context, ip, function, account string, cost int) (answer, error) {
	body, err := json.Marshal(map[string]any{"function": function, "account": account, "version": "v1", "cost": cost})
	if err != nil {
		return answer{}, err
	}
	status, text, err := ask(ctx, http.MethodPost, "http://"+net.JoinHostPort(ip, "7778")+"/v1/check", body)
	if err != nil {
		return answer{}, err
	}
	if status != http.StatusOK {
		return answer{}, fmt.Errorf("%d %s", status, text)
	}
	var a answer
	return a, json.Unmarshal(text, &a)
}

// send asks for so many invocations, round robin.
func send(ctx context.Context, pods []corev1.Pod, account string, times int) (admitted int, err error) {
	for i := range times {
		p := pods[i%len(pods)]
		a, err := check(ctx, p.Status.PodIP, limited, account, 1)
		if err != nil {
			return admitted, fmt.Errorf("%s: %w", p.Name, err)
		}
		if a.Degraded {
			return admitted, fmt.Errorf("%s decides degraded", p.Name)
		}
		if a.Allowed {
			admitted++
		}
	}
	return admitted, nil
}
