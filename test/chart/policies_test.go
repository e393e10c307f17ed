package chart

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/headgate-io/headgate/ratelimit/policy"
)

// What the values hold is what the program reads, whatever helm does to numbers
// and quotes on the way.
func TestPoliciesArriveAsTheyAre(t *testing.T) {
	t.Parallel()
	written := `[
		{"function": "*", "account": {"rates": "10-S,1000-H"}},
		{"function": "123", "version": "1.0", "total": {"rates": "0-S"}, "enforce": false},
		{"function": "on", "version": "1e6", "account": {"overrides": {"null": "5-M", "0x1F": "100/7d"}, "exclude": ["yes", "~"]}, "consistency": "exact"},
		{"function": "a # b: 'c' \"d\"", "subject": {"rates": ["3/1h30m fixed", {"units": 9007199254740992, "period": "30s", "algorithm": "token-bucket", "burst": 1000000}]}, "onStoreFailure": "deny"},
		{"function": "resize", "total": {"rates": [{"units": 123456789, "period": "1h"}]}, "consistency": "delayed"}
	]`
	o := with("insecure: true", `{"policies": `+written+`}`).render(t)
	files := named[corev1.ConfigMap](t, o, "h-headgate-policies").Data
	want, _, err := policy.Parse([]byte(written))
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := policy.Parse([]byte(files["policies.yaml"]))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, files["policies.yaml"])
	}
	if len(got) != len(want) {
		t.Fatalf("%d policies of %d", len(got), len(want))
	}
	for i := range want {
		if policy.Digest(got[i]) != policy.Digest(want[i]) {
			t.Errorf("policy %s is not as written:\n%s", want[i].Function, files["policies.yaml"])
		}
	}
	if _, _, err := policy.Parse([]byte(files["helm-test.yaml"])); err != nil {
		t.Errorf("the helm test's policy: %v", err)
	}
}

// No policies are a file with a comment: an empty one would be a fault.
func TestNoPoliciesAreNoFault(t *testing.T) {
	t.Parallel()
	o := with("{insecure: true, tests: {enabled: false}}").render(t)
	for name, text := range named[corev1.ConfigMap](t, o, "h-headgate-policies").Data {
		if policies, _, err := policy.Parse([]byte(text)); err != nil || len(policies) != 0 || len(bytes.TrimSpace([]byte(text))) == 0 {
			t.Errorf("%s: %d policies, %v, in %q", name, len(policies), err, text)
		}
	}
}

// The schema takes what the program takes and refuses what it refuses, as far
// as it can tell.
func TestPolicySchemaAgreesWithTheProgram(t *testing.T) {
	t.Parallel()
	cases := []struct {
		document string
		looser   bool // the schema cannot tell
	}{
		{`{"function": "f", "account": {"rates": "10-S"}}`, false},
		{`{"function": "f", "version": "v", "account": {"rates": " 10-S , 5/30s token-bucket burst=9 ,, 1-d"}}`, false},
		{`{"function": "f", "account": {"rates": "100/1h30m SLIDING"}}`, false},
		{`{"function": "f", "account": {"rates": ["10-S", {"units": 1, "period": "7d"}]}}`, false},
		{`{"function": "f", "account": {"overrides": {"a": "10-S"}}}`, false},
		{`{"function": "f", "account": {"rates": "10-S", "overrides": {}, "exclude": []}}`, false},
		{`{"function": "f", "enforce": false}`, false},
		{`{"function": "*", "version": "*", "total": {"rates": "0-S"}}`, false},
		{`{"function": "f", "total": {"rates": {"units": 1, "period": "1s"}}}`, false},
		{`{"account": {"rates": "10-S"}}`, false},
		{`{"function": ""}`, false},
		{`{"function": "*", "version": "v"}`, false},
		{`{"function": "f", "acount": {"rates": "10-S"}}`, false},
		{`{"function": "f", "account": {}}`, false},
		{`{"function": "f", "account": {"overrides": {}}}`, false},
		{`{"function": "f", "account": {"exclude": ["a"]}}`, false},
		{`{"function": "f", "account": {"overrides": {"*": "10-S"}}}`, false},
		{`{"function": "f", "account": {"rates": "10-S", "exclude": ["*"]}}`, false},
		{`{"function": "f", "total": {"rates": ""}}`, false},
		{`{"function": "f", "total": {"rates": []}}`, false},
		{`{"function": "f", "total": {"rates": "10-X"}}`, false},
		{`{"function": "f", "total": {"rates": "-10-S"}}`, false},
		{`{"function": "f", "total": {"rates": "1.5-S"}}`, false},
		{`{"function": "f", "total": {"rates": "10-S fixed burst=3"}}`, false},
		{`{"function": "f", "total": {"rates": "10-S often"}}`, false},
		{`{"function": "f", "total": {"rates": "10-S", "overrides": {}}}`, false},
		{`{"function": "f", "total": {"rates": [{"units": 1}]}}`, false},
		{`{"function": "f", "total": {"rates": [{"units": -1, "period": "1s"}]}}`, false},
		{`{"function": "f", "total": {"rates": [{"units": 1.5, "period": "1s"}]}}`, false},
		{`{"function": "f", "total": {"rates": [{"units": 1, "period": "1s", "burst": 2}]}}`, false},
		{`{"function": "f", "total": {"rates": [{"units": 1, "period": "1s", "algorithm": "leaky"}]}}`, false},
		{`{"function": "f", "consistency": "eventual"}`, false},
		{`{"function": "f", "onStoreFailure": "panic"}`, false},
		{`{"function": "f", "enforce": "no way"}`, false},
		{`{"function": "f", "total": {"rates": "10/1ms"}}`, true},
		{`{"function": "f", "total": {"rates": "10/soon"}}`, true},
		{`{"function": "f", "total": {"rates": "9999999999999999-S"}}`, true},
	}
	for _, c := range cases {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			_, _, wrong := policy.Parse([]byte(c.document))
			_, refused := helm(t, with("insecure: true", `{"policies": [`+c.document+`]}`).args(t, "template")...)
			if c.looser {
				if wrong == nil || refused != nil {
					t.Errorf("%s: the program says %v, the schema %v; this one can be among the others", c.document, wrong, refused)
				}
				return
			}
			if (wrong == nil) != (refused == nil) {
				t.Errorf("%s: the program says %v, the schema %v", c.document, wrong, refused)
			}
		})
	}
}

// Ports of NATS are taken from its addresses.
func TestNetworkPolicyOpensThePortsOfNATS(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][]int{
		"nats://a": {4222}, "nats://a:5222": {5222}, "tls://a:1,nats://b:2, nats://c:1": {1, 2}, "ws://a": {80}, "wss://a": {443}, "nats://[::1]:7": {7},
	} {
		quoted, err := json.Marshal(url)
		if err != nil {
			t.Fatal(err)
		}
		o := with("insecure: true", `{"nats": {"url": `+string(quoted)+`}}`).render(t)
		var got []int
		for _, rule := range one[networkingv1.NetworkPolicy](t, o).Spec.Egress {
			for _, port := range rule.Ports {
				if port.Port.IntValue() != 53 {
					got = append(got, port.Port.IntValue())
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: ports %v, want %v", url, got, want)
		}
	}
}
