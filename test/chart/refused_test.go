package chart

import (
	"strings"
	"testing"
)

// What does not fit together is refused, with the value's name and the reason.
func TestRefused(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, values string
		words        []string
	}{
		{"no authentication", "insecure: false", []string{"insecure=false", "no authentication", "insecure=true"}},
		{"two members", "replicaCount: 2", []string{"replicaCount=2", "must be odd", "nats.url"}},
		{"four members", "replicaCount: 4", []string{"replicaCount=4", "must be odd"}},
		{"no pods", "replicaCount: 0", []string{"/replicaCount", "minimum"}},
		{"autoscaled members", "autoscaling: {enabled: true}", []string{"autoscaling.enabled", "not without nats.url", "majority"}},
		{"more replicas than members", "{replicaCount: 3, nats: {replicas: 5}}", []string{"nats.replicas=5", "only 3 servers"}},
		{"two replicas", "nats: {replicas: 2}", []string{"/nats/replicas"}},
		{"budget that takes the majority", "podDisruptionBudget: {maxUnavailable: 2}", []string{"podDisruptionBudget.maxUnavailable=2", "majority"}},
		{"more pods at least than at most", "{nats: {url: 'nats://n'}, autoscaling: {enabled: true, minReplicas: 6, maxReplicas: 5}}", []string{"autoscaling.minReplicas=6", "autoscaling.maxReplicas=5"}},
		{"scaled by nothing", "{nats: {url: 'nats://n'}, autoscaling: {enabled: true, targetCPUUtilizationPercentage: 0}}", []string{"autoscaling", "targetCPUUtilizationPercentage"}},
		{"scraped by nobody", "podMonitor: {enabled: true}", []string{"networkPolicy.monitoring", "podMonitor.enabled"}},

		{"a variable twice", "extraEnv: [{name: A, value: a}, {name: A, value: b}]", []string{"extraEnv", "A is given twice"}},
		{"a variable of the chart", "extraEnv: [{name: HEADGATE_NODE_NAME, value: x}]", []string{"extraEnv", "HEADGATE_NODE_NAME is set by the chart"}},
		{"the routes' password", "extraEnv: [{name: HEADGATE_CLUSTER_PASSWORD, value: x}]", []string{"HEADGATE_CLUSTER_PASSWORD is set by the chart"}},
		{"a key of the chart", "extraEnv: [{name: HEADGATE_DRAIN_NOTICE, value: 0s}]", []string{"HEADGATE_DRAIN_NOTICE", "drain.notice", "the chart decides"}},
		{"a nested key of the chart", "extraEnv: [{name: HEADGATE_NATS_TLS_CA_FILE, value: x}]", []string{"HEADGATE_NATS_TLS_CA_FILE", "nats.tls.caFile"}},
		{"a volume of the chart", "{extraVolumes: [{name: data, emptyDir: {}}]}", []string{"extraVolumes", "data is taken"}},
		{"a path of the chart", "extraVolumeMounts: [{name: config, mountPath: /etc/headgate/policies}]", []string{"extraVolumeMounts", "/etc/headgate/policies is taken"}},
		{"a label of the chart on pods", "podLabels: {app.kubernetes.io/name: x}", []string{"podLabels", "app.kubernetes.io/name"}},
		{"a label of the chart on all", "commonLabels: {app.kubernetes.io/component: x}", []string{"commonLabels", "app.kubernetes.io/component"}},

		{"credentials in the URL", "nats: {url: 'nats://user:pass@n:4222'}", []string{"/nats/url"}},
		{"a kind without a secret", "nats: {url: 'nats://n', auth: {kind: creds}}", []string{"nats.auth.existingSecret", "creds"}},
		{"a secret without a kind", "nats: {url: 'nats://n', auth: {existingSecret: s}}", []string{"nats.auth.kind", "s"}},
		{"credentials without a URL", "nats: {auth: {kind: token, existingSecret: s}}", []string{"nats.auth", "nats.url", "embedded.auth"}},
		{"half a certificate", "nats: {url: 'nats://n', tls: {existingSecret: s, certKey: tls.crt}}", []string{"nats.tls.certKey", "go together"}},
		{"a token for no API", "nvcf: {token: {existingSecret: s}}", []string{"nvcf.address"}},
		{"two tokens for the API", "nvcf: {address: 'a:1', token: {existingSecret: s}, oauth: {tokenURL: 'https://o', clientID: c, existingSecret: o}}", []string{"nvcf.token.existingSecret", "nvcf.oauth.tokenURL"}},
		{"a client without a secret", "nvcf: {address: 'a:1', oauth: {tokenURL: 'https://o', clientID: c}}", []string{"nvcf.oauth.existingSecret"}},

		{"files not asked", "config: {policies: {order: [bucket]}}", []string{"config.policies.order", "must name file"}},
		{"two policies of a function", "policies: [{function: f, total: {rates: 1-S}}, {function: f, version: '*', total: {rates: 2-S}}]", []string{"policies", `"f"`, "has two"}},
		{"the helm test's function", "policies: [{function: headgate-helm-test, total: {rates: 1-S}}]", []string{"policies", "headgate-helm-test", "tests.enabled"}},
		{"a value that is none", "replicas: 3", []string{"replicas", "not allowed"}},
		{"a nested value that is none", "nats: {uri: x}", []string{"/nats", "uri"}},
		{"a default taken away", "drain: {notice: null}", []string{"/drain", "notice"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			why := with("insecure: true", c.values).refused(t)
			for _, word := range c.words {
				if !strings.Contains(why, word) {
					t.Errorf("does not say %q: %s", word, why)
				}
			}
		})
	}
}

// All faults are told at once.
func TestRefusedForEveryReason(t *testing.T) {
	t.Parallel()
	why := with("{replicaCount: 4, terminationGracePeriodSeconds: 5, extraEnv: [{name: HEADGATE_NODE_NAME, value: x}]}").refused(t)
	for _, word := range []string{"insecure=false", "replicaCount=4", "terminationGracePeriodSeconds=5", "HEADGATE_NODE_NAME"} {
		if !strings.Contains(why, word) {
			t.Errorf("does not say %q: %s", word, why)
		}
	}
}
