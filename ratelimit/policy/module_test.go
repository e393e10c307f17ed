package policy_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf"
)

// The modules as an application uses them: sources appear where they are set up.
func TestModule(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	if err := os.WriteFile(path, []byte("function: f\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := policy.DefaultConfig()
	cfg.Path = path
	api := nvcf.DefaultConfig()
	api.Address = "127.0.0.1:1" // nobody asks
	var finder ratelimit.Finder
	var set *policy.Set
	app := fxtest.New(t, fx.Supply(cfg, api, slog.New(slog.DiscardHandler)), policy.Module, nvcf.Module, fx.Populate(&finder, &set))
	app.RequireStart()
	if p, _ := finder.Find(t.Context(), "f", "v"); p == nil || finder != ratelimit.Finder(set) || set.Loaded() != nil {
		t.Errorf("found %v, loaded %v", p, set.Loaded())
	}
	app.RequireStop()

	none := fxtest.New(t, fx.Supply(policy.DefaultConfig(), nvcf.DefaultConfig()), policy.Module, nvcf.Module, fx.Populate(&finder))
	none.RequireStart()
	if p, degraded := finder.Find(t.Context(), "f", "v"); p != nil || degraded {
		t.Errorf("without sources: found %v, degraded %v", p, degraded)
	}
	none.RequireStop()
}

// A path that cannot be read is a fault of the configuration: the application
// does not start.
func TestModule_badPath(t *testing.T) {
	t.Parallel()
	cfg := policy.DefaultConfig()
	cfg.Path = filepath.Join(t.TempDir(), "missing")
	app := fx.New(fx.NopLogger, fx.Supply(cfg), policy.Module, fx.Invoke(func(*policy.Set) {}))
	if err := app.Start(t.Context()); err == nil {
		t.Error("the application started")
	}
}
