package chart

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Every ci file renders to objects that decode strictly, and lints strictly.
func TestCIFiles(t *testing.T) {
	t.Parallel()
	files := ciFiles(t)
	for _, want := range []string{"default", "embedded-single", "embedded-three", "beside-nats", "everything"} {
		if files[want] == "" {
			t.Errorf("no ci/%s-values.yaml", want)
		}
	}
	for name, values := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := with(values).render(t)
			checkObjects(t, objects)
			path := filepath.Join(chartDir, "ci", name+"-values.yaml")
			if out, err := helm(t, "lint", "--strict", "-f", path, chartDir); err != nil {
				t.Errorf("lint: %v\n%s", err, out)
			}
		})
	}
}

// checkObjects holds what is true of every rendering.
func checkObjects(t *testing.T, o objects) {
	t.Helper()
	w := workloadOf(t, o)
	checkNames(t, o, w)
	checkSelectors(t, o, w)
	checkSafe(t, o, w)
	checkFit(t, w)
	checkMounts(t, o, w)
}

// checkNames: names and labels are what the API server takes.
func checkNames(t *testing.T, o objects, w workload) {
	t.Helper()
	for _, obj := range o {
		name := obj.meta.GetName()
		for _, fault := range validation.IsDNS1123Label(name) {
			t.Errorf("%s %q: %s", obj.kind, name, fault)
		}
		if obj.kind == "Service" {
			for _, fault := range validation.IsDNS1035Label(name) {
				t.Errorf("%s %q: %s", obj.kind, name, fault)
			}
		}
		checkLabels(t, obj.kind+" "+name, obj.meta.GetLabels())
	}
	checkLabels(t, "pods", w.template.Labels)
	// A revision's name is a label of the pods.
	if w.kind == "StatefulSet" && len(w.name)+len("-0123456789") > validation.LabelValueMaxLength {
		t.Errorf("the name %q leaves no room for the hash of a revision", w.name)
	}
}

func checkLabels(t *testing.T, of string, labels map[string]string) {
	t.Helper()
	for key, value := range labels {
		for _, fault := range slices.Concat(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)) {
			t.Errorf("%s: label %s=%s: %s", of, key, value, fault)
		}
	}
	for _, key := range []string{"app.kubernetes.io/name", "app.kubernetes.io/instance"} {
		if labels[key] == "" {
			t.Errorf("%s: has no label %s", of, key)
		}
	}
}

// checkFit: a pod has the time that its parts may take, and the program is told
// the same numbers.
func checkFit(t *testing.T, w workload) {
	t.Helper()
	c := w.container()
	if c.StartupProbe == nil || c.LivenessProbe == nil || c.ReadinessProbe == nil {
		t.Fatal("a probe is missing")
	}
	for question, probe := range map[string]*corev1.Probe{
		"/readyz once": c.StartupProbe, "/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe,
	} {
		if path, _, _ := strings.Cut(question, " "); probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != "admin" {
			t.Errorf("a probe asks %s at %s, want %s at admin", probe.HTTPGet.Path, probe.HTTPGet.Port.String(), path)
		}
	}
}

// The folder holds what a chart's folder should, and nothing of a machine.
func TestFiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Chart.yaml", "README.md", "values.yaml", "values.schema.json", "templates/NOTES.txt", ".helmignore"} {
		if _, err := os.Stat(filepath.Join(chartDir, name)); err != nil {
			t.Error(err)
		}
	}
}
