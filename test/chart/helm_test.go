package chart

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	// helmModule is the helm that renders.
	helmModule = "helm.sh/helm/v3/cmd/helm@v3.22.0"
	// helmVariable names a helm binary to use instead of building one.
	helmVariable = "HELM_BIN"
)

// helmDir is where helm is built and keeps its caches; it goes with TestMain.
var helmDir string

var helmBinary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(helmVariable); path != "" {
		return path, nil
	}
	cmd := exec.Command("go", "install", helmModule)
	cmd.Env = append(os.Environ(), "GOBIN="+helmDir, "CGO_ENABLED=0", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build helm: %w\n%s", err, out)
	}
	return filepath.Join(helmDir, "helm"), nil
})

// helm runs helm, away from any cluster and anybody's settings.
func helm(t testing.TB, args ...string) (stdout string, err error) {
	t.Helper()
	path, err := helmBinary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"HOME=" + helmDir, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + os.DevNull}
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, complaints.String())
	}
	return out.String(), nil
}

// release is what is rendered. The zero value is the chart's defaults.
type release struct {
	name, namespace string
	chart           string // another chart's folder
	values          []string
}

// with is a release of the default name with these values, later ones stronger.
func with(values ...string) release { return release{values: values} }

func (r release) args(t testing.TB, command ...string) []string {
	t.Helper()
	args := append(command, or(r.name, "h"), or(r.chart, chartDir), "--namespace", or(r.namespace, "ns"))
	for _, values := range r.values {
		args = append(args, "-f", valuesFile(t, values))
	}
	return args
}

// valuesFile is not in the test's own folder: helm takes a comma in its name for
// the end of it.
func valuesFile(t testing.TB, values string) string {
	t.Helper()
	file, err := os.CreateTemp(helmDir, "values-*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(values); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

// render renders the release, or fails the test.
func (r release) render(t testing.TB) objects {
	t.Helper()
	out, err := helm(t, r.args(t, "template")...)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, out)
}

// refused renders the release, which must fail, and returns why.
func (r release) refused(t testing.TB) string {
	t.Helper()
	out, err := helm(t, r.args(t, "template")...)
	if err == nil {
		t.Fatalf("was rendered:\n%s", out)
	}
	return err.Error()
}

// notes is what the user is told at an install. helm tells it only beside a
// cluster, so a copy of the chart has it as an object.
func (r release) notes(t testing.TB) string {
	t.Helper()
	dir := copyChart(t, nil)
	notes := filepath.Join(dir, "templates", "NOTES.txt")
	text := "{{- define \"notes\" }}" + readFile(t, notes) + "{{ end -}}\nnotes: {{ include \"notes\" . | toJson }}\n"
	if err := os.WriteFile(filepath.Join(dir, "templates", "notes.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.chart = dir
	out, err := helm(t, r.args(t, "template", "--show-only", "templates/notes.yaml")...)
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Notes string `json:"notes"`
	}
	if err := yaml.Unmarshal([]byte(out), &told); err != nil {
		t.Fatal(err)
	}
	return told.Notes
}

// copyChart copies the chart, with some lines of its Chart.yaml replaced.
func copyChart(t testing.TB, replace map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(chartDir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "Chart.yaml")
	text := readFile(t, path)
	for old, line := range replace {
		if !strings.Contains(text, old) {
			t.Fatalf("Chart.yaml has no %q", old)
		}
		text = strings.Replace(text, old, line, 1)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// ciFiles are the values that the chart is tried with, by name.
func ciFiles(t testing.TB) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(chartDir, "ci", "*-values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files := make(map[string]string, len(paths))
	for _, path := range paths {
		files[strings.TrimSuffix(filepath.Base(path), "-values.yaml")] = readFile(t, path)
	}
	return files
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
