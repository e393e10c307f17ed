package daemon

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.uber.org/fx"
	"go.uber.org/fx/fxevent"

	"github.com/headgate-io/headgate/cmd/headgate/internal/config"
	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/lifecycle"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf"
)

// startTimeout bounds all start hooks; none waits for the store.
const startTimeout = 15 * time.Second

// Options is the whole graph of a node.
func Options(cfg config.Config, build Build, log *slog.Logger) fx.Option {
	return fx.Options(
		fx.StartTimeout(startTimeout),
		fx.StopTimeout(cfg.LifeConfig().LeaveTimeout),
		fx.WithLogger(func() fxevent.Logger { return quietly(log) }),
		fx.Supply(
			log, build,
			cfg.StoreConfig(), cfg.LimiterConfig(), cfg.PolicyConfig(), cfg.NVCFConfig(), cfg.DoorsConfig(), cfg.LifeConfig(),
			adminConfig{Listen: cfg.Admin.Listen},
			fx.Annotate(build.Version, fx.ResultTags(`name:"version"`)),
		),
		fx.Provide(newRegistry, asRegisterer),
		kvstore.Module, ratelimit.Module, policy.Module, nvcf.Module, invocation.Module, lifecycle.Module,
		fx.Provide(adminParts, newAdmin),
		fx.Invoke(hookAdmin),
	)
}

// quietly tells what fx does to those who debug. Its errors come back from the
// application and are told once, by whoever runs it.
func quietly(log *slog.Logger) fxevent.Logger {
	l := &fxevent.SlogLogger{Logger: log}
	l.UseLogLevel(slog.LevelDebug)
	l.UseErrorLevel(slog.LevelDebug)
	return l
}

// newRegistry is what /metrics shows.
func newRegistry(build Build) (*prometheus.Registry, error) {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg, build.register(reg)
}

func asRegisterer(reg *prometheus.Registry) prometheus.Registerer { return reg }
