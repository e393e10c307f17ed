package chart

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/headgate-io/headgate/test/cluster"
)

// joinBound is the longest that the test waits for a pod to be ready.
const joinBound = 90 * time.Second

// fleet is the pods of a rendered release.
type fleet struct {
	t       testing.TB // the row under way
	root    testing.TB // pods end with it
	objects objects
	kind    string
	dir     string
	hosts   []string
	replace []string
	pods    []*pod
	made    int // pods so far
	callers int
}

// startFleet starts all pods of a rendering, as many as it has replicas, and
// waits until they are ready. servers are the addresses of NATS, in place of
// those in nats.url.
func startFleet(t testing.TB, o objects, servers ...string) *fleet {
	t.Helper()
	w := workloadOf(t, o)
	f := &fleet{t: t, root: t, objects: o, kind: w.kind, dir: t.TempDir(), hosts: addresses(t, int(*w.replicas))}
	if url, external := flat("", o.config(t))["nats.url"].(string); external {
		f.replace = append(f.replace, url, strings.Join(servers, ","))
	}
	for i, host := range f.hosts {
		f.replace = append(f.replace, fmt.Sprintf("%s-%d.%s-headless.ns.svc:", w.name, i, w.name), host+":")
	}
	for i := range f.hosts {
		f.pods = append(f.pods, f.newPod(i))
	}
	f.each(func(p *pod) { p.program.start() })
	f.awaitReady()
	return f
}

// newPod makes the i-th pod. A StatefulSet's keeps its name and volume, a
// Deployment's is another one each time.
func (f *fleet) newPod(i int) *pod {
	f.t.Helper()
	name := fmt.Sprintf("%s-%d", workloadOf(f.t, f.objects).name, i)
	if f.kind == "Deployment" {
		f.made++
		name = fmt.Sprintf("%s-7d4b9c6f5-%05d", workloadOf(f.t, f.objects).name, f.made)
	}
	return newPod(f.root, f.objects, name, f.hosts[i], filepath.Join(f.dir, name), f.replace...)
}

// replacement starts the pod that the controller makes in place of the i-th.
func (f *fleet) replacement(i int) {
	f.t.Helper()
	if f.kind == "Deployment" {
		f.pods[i] = f.newPod(i)
	}
	f.pods[i].program.start()
}

// each does something to every pod at the same time.
func (f *fleet) each(do func(*pod)) {
	f.t.Helper()
	var all sync.WaitGroup
	for _, p := range f.pods {
		all.Go(func() { do(p) })
	}
	all.Wait()
}

// awaitReady waits until every pod passed its startup and readiness probes.
func (f *fleet) awaitReady() {
	f.t.Helper()
	end := time.NewTimer(joinBound)
	defer end.Stop()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for _, p := range f.pods {
		for _, probe := range []*corev1.Probe{p.container().StartupProbe, p.container().LivenessProbe, p.container().ReadinessProbe} {
			for err := p.probe(probe); err != nil; err = p.probe(probe) {
				select {
				case <-tick.C:
				case <-end.C:
					f.t.Fatalf("%s is not ready within %v: %v", p.name, joinBound, err)
				}
			}
		}
	}
}

// send asks for so many invocations of the account, round robin, and returns
// how many were admitted.
func (f *fleet) send(account string, times int) (admitted int) {
	f.t.Helper()
	for i := range times {
		if f.pods[i%len(f.pods)].check("fn", account) {
			admitted++
		}
	}
	return admitted
}

// row is one row of the table that the product is judged by: a fresh counter of
// ten, four spent, something happens, ten more once everybody is back.
func (f *fleet) row(perturb func()) {
	f.t.Helper()
	f.callers++
	account := fmt.Sprintf("account-%d", f.callers)
	if n := f.send(account, 4); n != 4 {
		f.t.Fatalf("%d of the first 4 admitted", n)
	}
	perturb()
	f.awaitReady()
	if n := f.send(account, 10); n != 6 {
		f.t.Errorf("%d of 10 more admitted, want 6", n)
	}
}

// helmTest runs the pods of helm test against the i-th pod.
func (f *fleet) helmTest(i int) {
	f.t.Helper()
	service := workloadOf(f.t, f.objects).name + ":"
	for _, test := range all[corev1.Pod](f.objects) {
		var args []string
		for _, arg := range test.Spec.Containers[0].Args {
			args = append(args, strings.Replace(arg, service, f.hosts[i]+":", 1))
		}
		if out, err := exec.Command(cluster.Binary(f.t), args...).CombinedOutput(); err != nil {
			f.t.Errorf("%s: %v\n%s", test.Name, err, out)
		}
	}
}
