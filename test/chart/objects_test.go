package chart

import (
	"regexp"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// object is one rendered object: its text and its decoded form.
type object struct {
	meta metav1.Object
	kind string
	text string
	data any
}

// objects are what a release was rendered to.
type objects []object

// kinds are the types of what the chart may render.
var kinds = map[string]func() metav1.Object{
	"apps/v1 Deployment":                     func() metav1.Object { return new(appsv1.Deployment) },
	"apps/v1 StatefulSet":                    func() metav1.Object { return new(appsv1.StatefulSet) },
	"autoscaling/v2 HorizontalPodAutoscaler": func() metav1.Object { return new(autoscalingv2.HorizontalPodAutoscaler) },
	"monitoring.coreos.com/v1 PodMonitor":    func() metav1.Object { return new(podMonitor) },
	"networking.k8s.io/v1 NetworkPolicy":     func() metav1.Object { return new(networkingv1.NetworkPolicy) },
	"policy/v1 PodDisruptionBudget":          func() metav1.Object { return new(policyv1.PodDisruptionBudget) },
	"v1 ConfigMap":                           func() metav1.Object { return new(corev1.ConfigMap) },
	"v1 Pod":                                 func() metav1.Object { return new(corev1.Pod) },
	"v1 Secret":                              func() metav1.Object { return new(corev1.Secret) },
	"v1 Service":                             func() metav1.Object { return new(corev1.Service) },
	"v1 ServiceAccount":                      func() metav1.Object { return new(corev1.ServiceAccount) },
}

// podMonitor is the part of the Prometheus operator's type that the chart uses;
// its module would bring half of Kubernetes along.
type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Selector            metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port          string `json:"port"`
			Path          string `json:"path"`
			Interval      string `json:"interval"`
			ScrapeTimeout string `json:"scrapeTimeout"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

var separator = regexp.MustCompile(`(?m)^---\n`)

// decode takes a rendering apart. Unknown and repeated fields fail the test.
func decode(t testing.TB, rendered string) objects {
	t.Helper()
	var all objects
	for _, doc := range separator.Split(rendered, -1) {
		doc = withoutComments(doc)
		if strings.TrimSpace(doc) == "" {
			continue
		}
		var of metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(doc), &of); err != nil {
			t.Fatalf("%v in:\n%s", err, doc)
		}
		empty, known := kinds[of.APIVersion+" "+of.Kind]
		if !known {
			t.Fatalf("no type for %q %q:\n%s", of.APIVersion, of.Kind, doc)
		}
		data := empty()
		if err := yaml.UnmarshalStrict([]byte(doc), data); err != nil {
			t.Fatalf("%s %s: %v", of.Kind, data.GetName(), err)
		}
		all = append(all, object{meta: data, kind: of.Kind, text: doc, data: data})
	}
	return all
}

var comment = regexp.MustCompile(`(?m)^#.*\n`)

// withoutComments leaves out the lines that helm and the templates begin a
// document with.
func withoutComments(doc string) string { return comment.ReplaceAllString(doc, "") }

// all are the objects of a type.
func all[T any](from objects) []*T {
	var found []*T
	for _, o := range from {
		if typed, ok := o.data.(*T); ok {
			found = append(found, typed)
		}
	}
	return found
}

// one is the object of a type, of which there must be exactly one.
func one[T any](t testing.TB, from objects) *T {
	t.Helper()
	found := all[T](from)
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T", len(found), *new(T))
	}
	return found[0]
}

// named is the object of a type and name.
func named[T any](t testing.TB, from objects, name string) *T {
	t.Helper()
	for _, o := range from {
		if typed, ok := o.data.(*T); ok && o.meta.GetName() == name {
			return typed
		}
	}
	t.Fatalf("no %T called %s", *new(T), name)
	return nil
}

// workload is what runs the pods, in either shape.
type workload struct {
	kind     string
	name     string
	replicas *int32
	selector *metav1.LabelSelector
	template corev1.PodTemplateSpec
}

func workloadOf(t testing.TB, from objects) workload {
	t.Helper()
	for _, d := range all[appsv1.Deployment](from) {
		return workload{"Deployment", d.Name, d.Spec.Replicas, d.Spec.Selector, d.Spec.Template}
	}
	s := one[appsv1.StatefulSet](t, from)
	return workload{"StatefulSet", s.Name, s.Spec.Replicas, s.Spec.Selector, s.Spec.Template}
}

// container is the one that limits.
func (w workload) container() corev1.Container { return w.template.Spec.Containers[0] }

// config is the program's configuration file.
func (o objects) config(t testing.TB) map[string]any {
	t.Helper()
	text := named[corev1.ConfigMap](t, o, workloadOf(t, o).name+"-config").Data["headgate.yaml"]
	var keys map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &keys); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return keys
}
