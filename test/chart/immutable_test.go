package chart

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// fixed are the fields that the API server will not let an upgrade change, by
// object. An object whose name changes is a new one, and the old one's pods,
// volumes and addresses are gone, so names count as well.
func fixed(o objects) map[string]any {
	found := map[string]any{}
	for _, obj := range o {
		name := obj.kind + " " + obj.meta.GetName()
		switch data := obj.data.(type) {
		case *appsv1.StatefulSet:
			found[name] = map[string]any{
				"selector": data.Spec.Selector, "serviceName": data.Spec.ServiceName,
				"podManagementPolicy": data.Spec.PodManagementPolicy, "volumeClaimTemplates": data.Spec.VolumeClaimTemplates,
			}
		case *appsv1.Deployment:
			found[name] = map[string]any{"selector": data.Spec.Selector}
		case *corev1.Service:
			found[name] = map[string]any{"clusterIP": data.Spec.ClusterIP}
		case *corev1.Secret:
			found[name] = map[string]any{"type": data.Type}
		}
	}
	return found
}

// upgrades are the releases that every version is rendered for.
func upgrades(t *testing.T) map[string]string {
	files := ciFiles(t)
	files["beside"] = beside
	files["five"] = "{insecure: true, replicaCount: 5}"
	return files
}

// Every version of the chart that was released has its fixed fields in
// testdata/fixed. The present one must have the same, or upgrades to it fail.
// With -update the present version's are written.
func TestImmutableFieldsStay(t *testing.T) {
	t.Parallel()
	present := map[string]any{}
	for name, values := range upgrades(t) {
		present[name] = fixed(with(values).render(t))
	}
	text, err := json.MarshalIndent(present, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	own := filepath.Join("testdata", "fixed", chartVersion(t)+".json")
	if *update {
		if err := os.WriteFile(own, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	versions, err := filepath.Glob(filepath.Join("testdata", "fixed", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(own); err != nil {
		t.Errorf("this version's fields are not kept: %v; run this test with -update", err)
	}
	for _, path := range versions {
		if readFile(t, path) != string(text)+"\n" {
			t.Errorf("fields that no upgrade can change are not those of %s", path)
		}
	}
}

// The next version, whatever else it changes, changes no fixed field by being
// the next.
func TestNextVersionChangesNoImmutableField(t *testing.T) {
	t.Parallel()
	version := chartVersion(t)
	next := copyChart(t, map[string]string{"\nversion: " + version: "\nversion: 9.8.7", "\nappVersion: " + version: "\nappVersion: 9.8.7"})
	for name, values := range upgrades(t) {
		before := fixed(with(values).render(t))
		rendering := release{chart: next, values: []string{values}}.render(t)
		after := fixed(rendering)
		was, is := encoded(t, before), encoded(t, after)
		if was != is {
			t.Errorf("%s: was\n%s\nis\n%s", name, was, is)
		}
		if strings.Contains(is, "9.8.7") || !strings.Contains(workloadOf(t, rendering).container().Image, "9.8.7") && name != "everything" {
			t.Errorf("%s: the next version is in the wrong places", name)
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
