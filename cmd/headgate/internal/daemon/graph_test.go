package daemon

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"

	"github.com/headgate-io/headgate/cmd/headgate/internal/config"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// The real graph has everything that it asks for.
func TestOptions_graphIsComplete(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	if err := fx.ValidateApp(Options(cfg, ReadBuild("v0"), quiet), fx.Invoke(func(parts) {})); err != nil {
		t.Fatal(err)
	}
}

// All metrics of a node fit on one registry, under names of ours. How the names
// are spelled is tested where they are.
func TestOptions_metrics(t *testing.T) {
	t.Parallel()
	var reg *prometheus.Registry
	cfg := config.Default()
	cfg.DataDir = t.TempDir()
	app := fx.New(Options(cfg, ReadBuild("v0"), quiet), fx.Populate(&reg))
	if err := app.Err(); err != nil {
		t.Fatal(err)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name := f.GetName()
		if !strings.HasPrefix(name, "headgate_") && !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("%s is not ours", name)
		}
	}
}
