package chart

import (
	"strings"
	"testing"
)

// The notes tell how to ask, what is insecure, and what may be lost, as
// configured.
func TestNotes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, values string
		says, silent []string
	}{
		{"default", "insecure: true",
			[]string{"3 pods with embedded NATS, 3 replicas", "/v1/check", "port-forward service/h-headgate", "helm test", "There is no policy", "insecure=true", "networkPolicy.clients lets every pod", "embedded.tls.existingSecret", "nothing that one volume of 3"},
			[]string{"nats.url is spoken", "persistence.enabled=false", "service.type"}},
		{"single", "{insecure: true, replicaCount: 1, persistence: {enabled: false}}",
			[]string{"1 pod with embedded NATS, 1 replica", "counters are gone when the pod is replaced"}, []string{"embedded.tls"}},
		{"members without disks", "{insecure: true, persistence: {enabled: false}}", []string{"majority of the pods"}, nil},
		{"beside", beside,
			[]string{"3 pods beside NATS, 3 replicas", "nats.url is spoken to without TLS", "nats.auth.kind=none", "nothing that one NATS server"}, []string{"embedded."}},
		{"beside one", "{insecure: true, replicaCount: 1, nats: {url: 'nats://n'}}", []string{"nats.replicas=3"}, nil},
		{"locked", "{insecure: true, policies: [{function: f, total: {rates: 1-S}}], nats: {url: 'tls://n', auth: {kind: creds, existingSecret: s}}, networkPolicy: {clients: [{ipBlock: {cidr: 10.0.0.0/8}}]}, tests: {enabled: false}}",
			[]string{"insecure=true"}, []string{"networkPolicy", "nats.", "There is no policy", "helm test"}},
		{"open", "{insecure: true, networkPolicy: {enabled: false}, service: {type: LoadBalancer}}",
			[]string{"networkPolicy.enabled=false", "service.type=LoadBalancer"}, nil},
		{"autoscaled", "{insecure: true, nats: {url: 'nats://n'}, autoscaling: {enabled: true}}", []string{"3 to 10 pods"}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			notes := with(c.values).notes(t)
			for _, word := range c.says {
				if !strings.Contains(notes, word) {
					t.Errorf("do not say %q:\n%s", word, notes)
				}
			}
			for _, word := range c.silent {
				if strings.Contains(notes, word) {
					t.Errorf("say %q:\n%s", word, notes)
				}
			}
		})
	}
}
