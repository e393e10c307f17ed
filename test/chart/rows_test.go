package chart

import (
	"os/exec"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/headgate-io/headgate/test/cluster"
)

// patient makes the program count on its answers and not on the speed of the
// machine that the test runs on.
const patient = `
insecure: true
policies: [{function: fn, account: {rates: "10-H"}}]
config: {limiter: {attempt: 1s}}
drain: {notice: 2s}
probes: {ready: {failureThreshold: 1}}
`

// What is rendered starts the real program, in both shapes, and counters
// survive what happens to pods.
func TestRenderedPodsKeepCounters(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		testRows(t, startFleet(t, with(patient).render(t)))
	})
	t.Run("beside NATS", func(t *testing.T) {
		t.Parallel()
		nats := cluster.Start(t, cluster.Options{Shape: cluster.External, Later: true})
		nats.StartServers()
		var urls []string
		for _, server := range nats.Servers() {
			urls = append(urls, server.URL())
		}
		testRows(t, startFleet(t, with(patient, "nats: {url: 'nats://nats:4222'}").render(t), urls...))
	})
}

func testRows(t *testing.T, f *fleet) {
	f.helmTest(1)
	rows := []struct {
		name    string
		perturb func()
	}{
		{"row 1 control", func() {}},
		{"row 4 graceful stop of all", func() {
			f.each((*pod).stop)
			f.restart()
		}},
		{"row 5 rolling restart twice without traffic", func() {
			for range 2 {
				for i, p := range f.pods {
					p.stop()
					f.replacement(i)
					f.awaitReady()
				}
			}
		}},
		{"row 9 SIGKILL of all at the same instant", func() {
			f.each(func(p *pod) { p.program.kill() })
			f.restart()
		}},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			f.t = t
			f.row(row.perturb)
		})
	}
	f.t = t
}

// restart starts the replacements of all pods at once.
func (f *fleet) restart() {
	f.t.Helper()
	for i := range f.pods {
		f.replacement(i)
	}
}

// The program takes every configuration that the chart can render for it, and
// means by it what the chart does.
func TestProgramTakesWhatIsRendered(t *testing.T) {
	t.Parallel()
	values := ciFiles(t)
	for name, base := range bases {
		values["base "+name] = base
	}
	for name, v := range values {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := with(v).render(t)
			p := newPod(t, o, "pod-0", "127.0.0.1", t.TempDir()+"/pod-0")
			cmd := exec.Command(cluster.Binary(t), append(p.args, "--print-config")...)
			cmd.Env = p.env
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			var keys map[string]any
			if err := yaml.Unmarshal(out, &keys); err != nil {
				t.Fatal(err)
			}
			inForce := flat("", keys)
			if inForce["node.name"] != "pod-0" {
				t.Errorf("node.name %v", inForce["node.name"])
			}
			for _, key := range []string{"nats.replicas", "drain.notice", "log.format", "insecure"} {
				if rendered := flat("", o.config(t))[key]; rendered != inForce[key] {
					t.Errorf("%s: rendered %v, in force %v", key, rendered, inForce[key])
				}
			}
			if password := inForce["cluster.password"]; strings.Contains(string(out), "cluster:") && inForce["cluster.listen"] != "" && password != "(redacted)" {
				t.Errorf("members would not authenticate to one another: %v", password)
			}
		})
	}
}
