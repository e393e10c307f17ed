package daemon

import (
	"context"
	"fmt"
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
		fx.Provide(
			nodeCount, observer, newJoiner, operatorOf, adminParts, newAdmin, bucketPolicies,
			fx.Annotate(asSource, fx.ResultTags(`group:"policy-sources"`)),
			fx.Annotate(sticky, fx.ResultTags(`name:"headgate.sticky"`)),
			fx.Annotate(degraded, fx.ResultTags(`name:"headgate.degraded"`)),
			fx.Annotate(checks, fx.ResultTags(`group:"headgate.readiness"`)),
		),
		fx.Invoke(hookJoiner, hookAdmin),
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

func operatorOf(store *kvstore.Store, l *ratelimit.Limiter) *kvstore.Operator {
	return kvstore.NewOperator(store, l)
}

func nodeCount(store *kvstore.Store) ratelimit.NodeCount { return store.Live }

// bucketPolicies are the policies in the store. They wait for it by themselves.
func bucketPolicies(lc fx.Lifecycle, store *kvstore.Store) *kvstore.Policies {
	p := kvstore.NewPolicies(store)
	lc.Append(fx.StartStopHook(p.Start, p.Stop))
	return p
}

func asSource(p *kvstore.Policies) policy.Source { return p }

// sticky: a node may stay in service without its store unless a policy would
// then have it deny everybody.
func sticky(set *policy.Set) func() bool {
	return func() bool { return !set.DeniesWithoutStore() }
}

func degraded(l *ratelimit.Limiter) func() bool { return l.Degraded }

// observer makes everybody follow the lifecycle. It runs before a state shows,
// so the gate is open when /readyz says so.
func observer(gate *invocation.Gate, rpc *invocation.GRPCServer, store *kvstore.Store) func(lifecycle.State) {
	phase := lifecycle.Starting
	return func(s lifecycle.State) {
		if s.Ready {
			gate.Open()
		}
		rpc.SetServing(s.Ready)
		if s.Phase != phase {
			phase = s.Phase
			store.SetPhase(phase.String())
		}
	}
}

// checks is what a ready node needs, by name.
func checks(store *kvstore.Store, set *policy.Set, j *joiner) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{
		"policies": func(context.Context) error { return set.Loaded() },
		"joined":   j.check,
	}
	for _, c := range store.Checks() {
		all[c.Name] = func(context.Context) error { return storeCheck(store, c.Name) }
	}
	return all
}

// storeCheck is how the store's check of this name stands now.
func storeCheck(store *kvstore.Store, name string) error {
	for _, c := range store.Checks() {
		if c.Name == name {
			return c.Err
		}
	}
	return fmt.Errorf("the store no longer checks %q", name)
}
