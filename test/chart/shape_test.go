package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// statefulSet is the one of a rendering, or nil.
func statefulSet(o objects) *appsv1.StatefulSet {
	for _, s := range all[appsv1.StatefulSet](o) {
		return s
	}
	return nil
}

const beside = "{insecure: true, nats: {url: 'nats://nats:4222'}}"

// How many pods, of which kind, with how many replicas of every bucket, and
// what goes with it.
func TestShapes(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, values, kind string
		pods               int32 // -1: an autoscaler says
		buckets            float64
		routes             int
		budget             bool
	}{
		{"embedded one", "replicaCount: 1", "StatefulSet", 1, 1, 0, false},
		{"embedded three", "replicaCount: 3", "StatefulSet", 3, 3, 3, true},
		{"embedded five", "replicaCount: 5", "StatefulSet", 5, 3, 5, true},
		{"embedded five, five replicas", "{replicaCount: 5, nats: {replicas: 5}}", "StatefulSet", 5, 5, 5, true},
		{"beside one", "{replicaCount: 1, nats: {url: 'nats://n'}}", "Deployment", 1, 1, 0, false},
		{"beside one, three replicas", "{replicaCount: 1, nats: {url: 'nats://n', replicas: 3}}", "Deployment", 1, 3, 0, false},
		{"beside two", "{replicaCount: 2, nats: {url: 'nats://n'}}", "Deployment", 2, 3, 0, true},
		{"beside three", "{replicaCount: 3, nats: {url: 'nats://n'}}", "Deployment", 3, 3, 0, true},
		{"autoscaled one to five", "{replicaCount: 1, nats: {url: 'nats://n'}, autoscaling: {enabled: true, minReplicas: 1, maxReplicas: 5}}", "Deployment", -1, 3, 0, true},
		{"autoscaled one to one", "{replicaCount: 3, nats: {url: 'nats://n'}, autoscaling: {enabled: true, minReplicas: 1, maxReplicas: 1}}", "Deployment", -1, 1, 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o := with("insecure: true", c.values).render(t)
			checkObjects(t, o)
			w := workloadOf(t, o)
			if w.kind != c.kind {
				t.Errorf("is a %s, want a %s", w.kind, c.kind)
			}
			if c.pods < 0 && w.replicas != nil || c.pods >= 0 && (w.replicas == nil || *w.replicas != c.pods) {
				t.Errorf("replicas %v, want %d", w.replicas, c.pods)
			}
			if scaled := len(all[autoscalingv2.HorizontalPodAutoscaler](o)) == 1; scaled != (c.pods < 0) {
				t.Errorf("an autoscaler: %v", scaled)
			}
			keys := flat("", o.config(t))
			if keys["nats.replicas"] != c.buckets {
				t.Errorf("nats.replicas %v, want %v", keys["nats.replicas"], c.buckets)
			}
			if routes, _ := keys["cluster.routes"].([]any); len(routes) != c.routes {
				t.Errorf("routes %v, want %d", routes, c.routes)
			}
			if budget := len(all[policyv1.PodDisruptionBudget](o)) == 1; budget != c.budget {
				t.Errorf("a disruption budget: %v", budget)
			}
		})
	}
}

// Routes name every member by the name that the headless service gives it, and
// members are named before they are ready.
func TestRoutesNameEveryMember(t *testing.T) {
	t.Parallel()
	o := with("{insecure: true, replicaCount: 5}").render(t)
	s := statefulSet(o)
	headless := named[corev1.Service](t, o, s.Spec.ServiceName)
	if headless.Spec.ClusterIP != corev1.ClusterIPNone || !headless.Spec.PublishNotReadyAddresses {
		t.Errorf("the headless service: clusterIP %q, publishNotReadyAddresses %v", headless.Spec.ClusterIP, headless.Spec.PublishNotReadyAddresses)
	}
	if s.Spec.PodManagementPolicy != appsv1.ParallelPodManagement {
		t.Errorf("podManagementPolicy %s: members that wait for one another must start together", s.Spec.PodManagementPolicy)
	}
	keys := flat("", o.config(t))
	var want []any
	for i := range 5 {
		want = append(want, fmt.Sprintf("nats-route://%s-%d.%s.ns.svc:6222", s.Name, i, headless.Name))
	}
	if routes := keys["cluster.routes"]; !slices.Equal(routes.([]any), want) {
		t.Errorf("routes %v, want %v", routes, want)
	}
	if keys["cluster.listen"] != "0.0.0.0:6222" || keys["cluster.name"] != s.Name {
		t.Errorf("cluster.listen %v, cluster.name %v", keys["cluster.listen"], keys["cluster.name"])
	}
	if env := s.Spec.Template.Spec.Containers[0].Env[0]; env.Name != "HEADGATE_NODE_NAME" || env.ValueFrom.FieldRef.FieldPath != "metadata.name" {
		t.Errorf("a member is not named for its pod: %v", env)
	}
}

// A rollout beside NATS never has fewer pods than it began with.
func TestRolloutKeepsEveryPod(t *testing.T) {
	t.Parallel()
	d := one[appsv1.Deployment](t, with(beside).render(t))
	r := d.Spec.Strategy.RollingUpdate
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || r.MaxSurge.IntValue() != 1 || r.MaxUnavailable.IntValue() != 0 {
		t.Errorf("strategy %+v", d.Spec.Strategy)
	}
	c := d.Spec.Template.Spec.Containers[0]
	joining := c.StartupProbe.PeriodSeconds * c.StartupProbe.FailureThreshold
	if *d.Spec.ProgressDeadlineSeconds <= joining+d.Spec.MinReadySeconds {
		t.Errorf("progressDeadlineSeconds %d gives up before a pod may: %d", *d.Spec.ProgressDeadlineSeconds, joining)
	}
}

// A rollout of members ends. A StatefulSet with a strategy's type and nothing
// else gets no partition from the API server, and its controller then makes
// pods of the old revision, deletes them for being old, and so on.
func TestRolloutOfMembersEnds(t *testing.T) {
	t.Parallel()
	strategy := statefulSet(with("insecure: true").render(t)).Spec.UpdateStrategy
	if strategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || strategy.RollingUpdate == nil ||
		strategy.RollingUpdate.Partition == nil || *strategy.RollingUpdate.Partition != 0 {
		t.Errorf("update strategy %+v", strategy)
	}
}

// A rollout replaces members one at a time, also right after they came up. With
// podManagementPolicy Parallel the controller deletes old pods that are not
// available all at once, and by minReadySeconds a pod that is ready is not.
func TestRolloutOfMembersIsPaced(t *testing.T) {
	t.Parallel()
	if s := statefulSet(with("{insecure: true, minReadySeconds: 30}").render(t)); s.Spec.MinReadySeconds != 0 {
		t.Errorf("minReadySeconds %d", s.Spec.MinReadySeconds)
	}
}

// The disks.
func TestPersistence(t *testing.T) {
	t.Parallel()
	s := statefulSet(with("{insecure: true, persistence: {size: 7Gi, storageClass: fast}}").render(t))
	if len(s.Spec.VolumeClaimTemplates) != 1 {
		t.Fatalf("%d claims", len(s.Spec.VolumeClaimTemplates))
	}
	claim := s.Spec.VolumeClaimTemplates[0].Spec
	if size := claim.Resources.Requests.Storage().String(); size != "7Gi" || *claim.StorageClassName != "fast" {
		t.Errorf("claim %+v", claim)
	}
	if p := s.Spec.PersistentVolumeClaimRetentionPolicy; p.WhenDeleted != "Retain" || p.WhenScaled != "Retain" {
		t.Errorf("claims are not kept: %+v", p)
	}
	s = statefulSet(with("{insecure: true, persistence: {enabled: false, size: 64Mi}}").render(t))
	if len(s.Spec.VolumeClaimTemplates) != 0 {
		t.Error("there are claims without persistence")
	}
	for _, v := range s.Spec.Template.Spec.Volumes {
		if v.Name == "data" && v.EmptyDir.SizeLimit.String() == "64Mi" {
			return
		}
	}
	t.Error("there is no emptyDir of 64Mi")
}

// The secret of the hash outlives the release; that of the routes does not.
func TestGeneratedSecrets(t *testing.T) {
	t.Parallel()
	o := with("insecure: true").render(t)
	hash, routes := named[corev1.Secret](t, o, "h-headgate-hash"), named[corev1.Secret](t, o, "h-headgate-routes")
	if hash.Annotations["helm.sh/resource-policy"] != "keep" || routes.Annotations["helm.sh/resource-policy"] != "" {
		t.Errorf("annotations %v and %v", hash.Annotations, routes.Annotations)
	}
	if len(hash.Data["secret"]) < 32 || len(routes.Data["password"]) < 32 || len(routes.Data["user"]) == 0 {
		t.Error("a secret is short")
	}
	again := with("insecure: true").render(t)
	if string(named[corev1.Secret](t, again, "h-headgate-hash").Data["secret"]) == string(hash.Data["secret"]) {
		t.Error("two installs have the same secret")
	}
	for _, m := range all[corev1.ConfigMap](o) {
		for key, text := range m.Data {
			for _, secret := range [][]byte{hash.Data["secret"], routes.Data["password"]} {
				if strings.Contains(text, string(secret)) {
					t.Errorf("%s of %s holds a secret", key, m.Name)
				}
			}
		}
	}
	if n := len(all[corev1.Secret](with("{insecure: true, hash: {existingSecret: a}, embedded: {auth: {existingSecret: b}}}").render(t))); n != 0 {
		t.Errorf("%d secrets beside those that exist", n)
	}
}
