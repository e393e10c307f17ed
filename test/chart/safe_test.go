package chart

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// checkSelectors: what selects pods selects the node's pods, and never the
// test's.
func checkSelectors(t *testing.T, o objects, w workload) {
	t.Helper()
	selectors := map[string]map[string]string{"workload": w.selector.MatchLabels}
	for _, s := range all[corev1.Service](o) {
		selectors["Service "+s.Name] = s.Spec.Selector
	}
	for _, p := range all[policyv1.PodDisruptionBudget](o) {
		selectors["PodDisruptionBudget"] = p.Spec.Selector.MatchLabels
	}
	for _, p := range all[networkingv1.NetworkPolicy](o) {
		selectors["NetworkPolicy"] = p.Spec.PodSelector.MatchLabels
	}
	for _, m := range all[podMonitor](o) {
		selectors["PodMonitor"] = m.Spec.Selector.MatchLabels
	}
	for _, c := range w.template.Spec.TopologySpreadConstraints {
		selectors["topology "+c.TopologyKey] = c.LabelSelector.MatchLabels
	}
	for of, selector := range selectors {
		sel := labels.SelectorFromSet(selector)
		if len(selector) == 0 || !sel.Matches(labels.Set(w.template.Labels)) {
			t.Errorf("%s selects %v, the pods have %v", of, selector, w.template.Labels)
		}
		for _, pod := range all[corev1.Pod](o) {
			if sel.Matches(labels.Set(pod.Labels)) {
				t.Errorf("%s selects the test's pod %s", of, pod.Name)
			}
		}
	}
}

// checkSafe: every pod is as locked up as it can be.
func checkSafe(t *testing.T, o objects, w workload) {
	t.Helper()
	pods := map[string]corev1.PodSpec{"pods": w.template.Spec}
	for _, pod := range all[corev1.Pod](o) {
		pods["pod "+pod.Name] = pod.Spec
	}
	for of, spec := range pods {
		if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
			t.Errorf("%s: get a service account token", of)
		}
		if spec.EnableServiceLinks == nil || *spec.EnableServiceLinks {
			t.Errorf("%s: get variables of Services, which look like configuration", of)
		}
		if spec.HostNetwork || spec.HostPID || spec.HostIPC {
			t.Errorf("%s: share the machine's namespaces", of)
		}
		s := spec.SecurityContext
		if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.RunAsUser == nil || *s.RunAsUser == 0 {
			t.Errorf("%s: may run as root", of)
		}
		if s == nil || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: have no seccomp profile", of)
		}
		for _, c := range spec.Containers {
			checkContainerSafe(t, of, c)
		}
	}
	for _, sa := range all[corev1.ServiceAccount](o) {
		if sa.AutomountServiceAccountToken == nil || *sa.AutomountServiceAccountToken {
			t.Error("the service account hands out tokens")
		}
	}
}

func checkContainerSafe(t *testing.T, of string, c corev1.Container) {
	t.Helper()
	s := c.SecurityContext
	if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
		t.Errorf("%s: can write to its root", of)
	}
	if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
		t.Errorf("%s: may gain privileges", of)
	}
	if s == nil || s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
		t.Errorf("%s: has capabilities", of)
	}
	if c.Name == "headgate" && (c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero()) {
		t.Errorf("%s: requests no resources", of)
	}
}

// checkMounts: every volume is mounted, every mount has a volume, every file
// that the configuration names is under a mount, and nothing is read from a
// path that is not the program's.
func checkMounts(t *testing.T, o objects, w workload) {
	t.Helper()
	volumes := map[string]bool{}
	for _, v := range w.template.Spec.Volumes {
		volumes[v.Name] = false
	}
	if s := statefulSet(o); s != nil {
		for _, claim := range s.Spec.VolumeClaimTemplates {
			volumes[claim.Name] = false
		}
	}
	var paths []string
	for _, m := range w.container().VolumeMounts {
		if _, known := volumes[m.Name]; !known {
			t.Errorf("mounts %s, and there is no such volume", m.Name)
		}
		volumes[m.Name] = true
		paths = append(paths, m.MountPath)
		if !m.ReadOnly && m.Name != "data" {
			t.Errorf("%s can be written to", m.MountPath)
		}
	}
	for name, mounted := range volumes {
		if !mounted {
			t.Errorf("volume %s is not mounted", name)
		}
	}
	for key, value := range flat("", o.config(t)) {
		path, isText := value.(string)
		if !isText || !strings.HasPrefix(path, "/") {
			continue
		}
		if !slices.ContainsFunc(paths, func(p string) bool { return path == p || strings.HasPrefix(path, p+"/") }) {
			t.Errorf("config %s=%s is under no mount", key, path)
		}
	}
}

// flat is a configuration with dots in its keys.
func flat(prefix string, keys map[string]any) map[string]any {
	all := map[string]any{}
	for key, value := range keys {
		if section, is := value.(map[string]any); is {
			for k, v := range flat(prefix+key+".", section) {
				all[k] = v
			}
			continue
		}
		all[prefix+key] = value
	}
	return all
}

// Nobody may talk who need not: a list of peers that is empty lets nobody in,
// where the API would let in everybody.
func TestNetworkPolicyLetsNobodyInByMistake(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{
		"default":       "insecure: true",
		"nobody":        "{insecure: true, tests: {enabled: false}, networkPolicy: {clients: []}}",
		"single nobody": "{insecure: true, replicaCount: 1, tests: {enabled: false}, networkPolicy: {clients: []}}",
		"beside nobody": "{insecure: true, nats: {url: 'nats://nats'}, tests: {enabled: false}, networkPolicy: {clients: []}}",
		"everything":    ciFiles(t)["everything"],
	} {
		policy := one[networkingv1.NetworkPolicy](t, with(values).render(t))
		if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress", "Egress"}) {
			t.Errorf("%s: policy types %v", name, policy.Spec.PolicyTypes)
		}
		for i, rule := range policy.Spec.Ingress {
			if len(rule.From) == 0 || len(rule.Ports) == 0 {
				t.Errorf("%s: ingress rule %d lets everybody in, or to every port", name, i)
			}
		}
		for i, rule := range policy.Spec.Egress {
			if len(rule.Ports) == 0 {
				t.Errorf("%s: egress rule %d lets out to every port", name, i)
			}
		}
		if name == "single nobody" && len(policy.Spec.Ingress) != 0 {
			t.Errorf("%s: ingress %v", name, policy.Spec.Ingress)
		}
	}
}

// The admin port, which can change policies, is for those who are named.
func TestAdminPortIsClosed(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]string{"embedded": "insecure: true", "beside": "{insecure: true, nats: {url: 'nats://nats'}}"} {
		o := with(values).render(t)
		for _, rule := range one[networkingv1.NetworkPolicy](t, o).Spec.Ingress {
			for _, port := range rule.Ports {
				if port.Port.String() == "admin" {
					t.Errorf("%s: the network policy opens the admin port", name)
				}
			}
		}
		for _, s := range all[corev1.Service](o) {
			for _, port := range s.Spec.Ports {
				if port.TargetPort.String() == "admin" {
					t.Errorf("%s: Service %s shows the admin port", name, s.Name)
				}
			}
		}
	}
}

// selects reports whether a selector takes pods with these labels.
func selects(selector *metav1.LabelSelector, pods map[string]string) bool {
	return labels.SelectorFromSet(selector.MatchLabels).Matches(labels.Set(pods))
}
