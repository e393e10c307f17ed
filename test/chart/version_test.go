package chart

import (
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func chartVersion(t *testing.T) string {
	t.Helper()
	var chart struct{ Version, AppVersion string }
	if err := yaml.Unmarshal([]byte(readFile(t, filepath.Join(chartDir, "Chart.yaml"))), &chart); err != nil {
		t.Fatal(err)
	}
	if chart.Version == "" || chart.Version != chart.AppVersion {
		t.Fatalf("version %q, appVersion %q: they go in step", chart.Version, chart.AppVersion)
	}
	return chart.Version
}

// The chart, the image's command and the program's stamp are of one version.
func TestVersionsAreInStep(t *testing.T) {
	t.Parallel()
	version, text := chartVersion(t), readFile(t, dockerfile)
	for _, want := range []string{"-X main.version=v" + version, "headgate:" + version} {
		if !strings.Contains(text, want) {
			t.Errorf("the Dockerfile does not say %q", want)
		}
	}
	image := workloadOf(t, with("insecure: true").render(t)).container().Image
	if !strings.HasSuffix(image, ":"+version) {
		t.Errorf("the pods run %s", image)
	}
}

// The image is as small and as plain as it can be.
func TestDockerfile(t *testing.T) {
	t.Parallel()
	var steps []string
	for line := range strings.Lines(readFile(t, dockerfile)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			steps = append(steps, line)
		}
	}
	all := strings.Join(steps, "\n")
	if steps[0] != "FROM scratch" {
		t.Errorf("begins with %s", steps[0])
	}
	for _, want := range []string{"COPY --chmod=0555 headgate /headgate", "ca-certificates.crt /etc/ssl/certs/ca-certificates.crt", "USER 65532:65532", `ENTRYPOINT ["/headgate"]`} {
		if !strings.Contains(all, want) {
			t.Errorf("does not say %q:\n%s", want, all)
		}
	}
	if strings.Contains(all, "RUN") {
		t.Error("runs something in an empty image")
	}
	w := workloadOf(t, with("insecure: true").render(t))
	if c := w.container().Command; len(c) != 1 || c[0] != "/headgate" {
		t.Errorf("the pods run %v, the image has /headgate", c)
	}
	if user := *w.template.Spec.SecurityContext.RunAsUser; user != 65532 {
		t.Errorf("the pods run as %d, the image as 65532", user)
	}
}
