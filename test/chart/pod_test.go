package chart

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// pod is one rendered pod as a process: its command, environment and files as
// the kubelet would make them, with addresses mapped to loopback and paths to
// temporary folders.
type pod struct {
	t       testing.TB
	name    string
	host    string // the pod's address
	root    string // the folder that stands for its file system
	spec    corev1.PodSpec
	args    []string
	env     []string
	program *process
}

// container is the one that limits.
func (p *pod) container() corev1.Container { return p.spec.Containers[0] }

// newPod makes the pod's files and prepares its process. Text that names
// addresses or paths goes through the pairs of replace.
func newPod(t testing.TB, o objects, name, host, root string, replace ...string) *pod {
	t.Helper()
	w := workloadOf(t, o)
	p := &pod{t: t, name: name, host: host, root: root, spec: w.template.Spec}
	mounts := slices.Clone(p.container().VolumeMounts)
	slices.SortFunc(mounts, func(a, b corev1.VolumeMount) int { return len(b.MountPath) - len(a.MountPath) })
	for _, m := range mounts {
		replace = append(replace, m.MountPath, filepath.Join(root, m.MountPath))
	}
	mapped := strings.NewReplacer(append(replace, "0.0.0.0:", host+":")...)
	for _, m := range mounts {
		p.mount(o, m, mapped)
	}
	for _, e := range p.container().Env {
		p.env = append(p.env, e.Name+"="+p.value(o, e))
	}
	for _, arg := range p.container().Args {
		p.args = append(p.args, mapped.Replace(arg))
	}
	p.program = newProcess(t, name, root+".log", p.args, p.env)
	return p
}

// mount writes the files of a volume where the container has them. What a claim
// or an emptyDir holds stays from one process to the next.
func (p *pod) mount(o objects, m corev1.VolumeMount, mapped *strings.Replacer) {
	p.t.Helper()
	dir := filepath.Join(p.root, m.MountPath)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	for name, text := range p.files(o, m.Name) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(mapped.Replace(text)), 0o600); err != nil {
			p.t.Fatal(err)
		}
	}
}

// files are what a volume holds when the pod is made.
func (p *pod) files(o objects, volume string) map[string]string {
	p.t.Helper()
	for _, v := range p.spec.Volumes {
		switch {
		case v.Name != volume:
		case v.ConfigMap != nil:
			return named[corev1.ConfigMap](p.t, o, v.ConfigMap.Name).Data
		case v.Projected != nil:
			return p.projected(o, v.Projected)
		case v.Secret != nil:
			files := map[string]string{}
			for _, item := range v.Secret.Items {
				files[item.Path] = secret(o, v.Secret.SecretName, item.Key)
			}
			return files
		}
	}
	return nil
}

func (p *pod) projected(o objects, from *corev1.ProjectedVolumeSource) map[string]string {
	files := map[string]string{}
	for _, source := range from.Sources {
		for _, m := range all[corev1.ConfigMap](o) {
			if source.ConfigMap == nil || m.Name != source.ConfigMap.Name {
				continue // one of the user's own
			}
			for name, text := range m.Data {
				files[name] = text
			}
		}
	}
	return files
}

// secret is what a rendered secret holds, or something for one that the user
// is to make.
func secret(o objects, name, key string) string {
	for _, s := range all[corev1.Secret](o) {
		if s.Name == name {
			return string(s.Data[key])
		}
	}
	return "what-the-user-put-there-" + key
}

func (p *pod) value(o objects, e corev1.EnvVar) string {
	p.t.Helper()
	switch from := e.ValueFrom; {
	case from == nil:
		return e.Value
	case from.FieldRef != nil && from.FieldRef.FieldPath == "metadata.name":
		return p.name
	case from.FieldRef != nil && from.FieldRef.FieldPath == "spec.nodeName":
		return "machine"
	case from.SecretKeyRef != nil:
		return secret(o, from.SecretKeyRef.Name, from.SecretKeyRef.Key)
	}
	p.t.Fatalf("cannot tell the value of %s", e.Name)
	return ""
}

// stop does what the kubelet does: the hook, SIGTERM, and SIGKILL when the
// grace period is over, which fails the test.
func (p *pod) stop() {
	p.t.Helper()
	if p.container().Lifecycle != nil {
		p.t.Fatal("there is a hook, and nobody to run it")
	}
	grace := time.Duration(*p.spec.TerminationGracePeriodSeconds) * time.Second
	if code, took := p.program.end(syscall.SIGTERM, grace); code != 0 || took > grace {
		p.t.Errorf("%s left with code %d after %v of %v", p.name, code, took, grace)
	}
}

// port is a container port by its name.
func (p *pod) port(name string) string {
	p.t.Helper()
	for _, port := range p.container().Ports {
		if port.Name == name {
			return fmt.Sprint(port.ContainerPort)
		}
	}
	p.t.Fatalf("no port %s", name)
	return ""
}

// probe asks what the kubelet would. The error says why the answer is no.
func (p *pod) probe(probe *corev1.Probe) error {
	port := probe.HTTPGet.Port
	if port.Type != intstr.String {
		return fmt.Errorf("port %v has no name", port)
	}
	url := "http://" + net.JoinHostPort(p.host, p.port(port.StrVal)) + probe.HTTPGet.Path
	status, body, err := ask(http.MethodGet, url, "", time.Duration(probe.TimeoutSeconds)*time.Second)
	if err != nil {
		return err
	}
	var state struct{ Degraded bool }
	if err := json.Unmarshal(body, &state); err != nil {
		return err
	}
	if status != http.StatusOK || state.Degraded {
		return fmt.Errorf("status %d: %s", status, body)
	}
	return nil
}

// check asks the HTTP front door for one invocation.
func (p *pod) check(function, account string) bool {
	p.t.Helper()
	question, err := json.Marshal(map[string]string{"function": function, "account": account, "version": "v1"})
	if err != nil {
		p.t.Fatal(err)
	}
	url := "http://" + net.JoinHostPort(p.host, p.port("http")) + "/v1/check"
	status, body, err := ask(http.MethodPost, url, string(question), 10*time.Second)
	var answer struct{ Allowed, Degraded bool }
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &answer) != nil || answer.Degraded {
		p.t.Errorf("%s answers %d %s, %v", p.name, status, body, err)
	}
	return answer.Allowed
}

func ask(method, url, body string, bound time.Duration) (status int, answer []byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Close = true // the next one may be another process
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}
