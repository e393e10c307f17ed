package ratelimit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/fx"
)

// Module provides a [*Limiter] and the [*Keyring] it uses, and starts it, by a
// [*Joiner], once its store is joined; it stops with the application. It needs
// a [Store], its [Clock] and [Membership], and a [Finder]; a [Config], a logger
// and a registerer are taken where they are provided. Settling takes half of the
// time that the application has left for stopping, at most; who wants another
// bound stops the limiter before the application.
//
// For a lifecycle it provides the check "joined" and whether decisions are
// degraded, under the names that it asks for.
var Module = fx.Module("ratelimit",
	fx.Provide(
		NewKeyring, provide, provideJoiner,
		fx.Annotate(readiness, fx.ResultTags(`group:"headgate.readiness"`)),
		fx.Annotate(degraded, fx.ResultTags(`name:"headgate.degraded"`)),
	),
	fx.Invoke(hook),
)

// Params is what [Module] asks of the application.
type Params struct {
	fx.In

	Store  Store
	Clock  Clock
	Finder Finder
	Keys   *Keyring
	// Config is [DefaultConfig] where there is none.
	Config     Config                `optional:"true"`
	Log        *slog.Logger          `optional:"true"`
	Registerer prometheus.Registerer `optional:"true"`
	Nodes      NodeCount             `optional:"true"`
	// Node is the name of this node where Config has none.
	Node string `name:"headgate.node" optional:"true"`
}

// NodeCount tells how many nodes share the counters, this one among them.
type NodeCount func() int

// provide only joins New to the application; everything here can be done by
// hand.
func provide(p Params) (*Limiter, error) {
	opts := []Option{WithRegisterer(p.Registerer)}
	if p.Log != nil {
		opts = append(opts, WithLogger(p.Log))
	}
	if p.Nodes != nil {
		opts = append(opts, WithNodes(p.Nodes))
	}
	cfg := p.Config
	if cfg == (Config{}) {
		cfg = DefaultConfig()
	}
	cfg.Node = cmp.Or(cfg.Node, p.Node)
	return New(p.Store, p.Clock, p.Finder, p.Keys, cfg, opts...)
}

// joinerParams is what a [*Joiner] is made of.
type joinerParams struct {
	fx.In

	Store      Membership
	Keys       *Keyring
	Limiter    *Limiter
	Log        *slog.Logger `optional:"true"`
	Companions []Companion  `group:"headgate.companions"`
}

func provideJoiner(p joinerParams) *Joiner {
	return NewJoiner(p.Store, p.Keys, p.Limiter, p.Log, p.Companions...)
}

func readiness(j *Joiner) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{"joined": j.Check}
}

func degraded(l *Limiter) func() bool { return l.Degraded }

func hook(lc fx.Lifecycle, j *Joiner, l *Limiter) {
	lc.Append(fx.Hook{OnStart: j.Start, OnStop: func(ctx context.Context) error {
		j.GiveUp()
		return errors.Join(settle(ctx, l), j.Stop(ctx))
	}})
}

// settle leaves time to the hooks that come after it: those that the budget of
// all does not reach are never run.
func settle(ctx context.Context, l *Limiter) error {
	if end, bounded := ctx.Deadline(); bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/2)
		defer cancel()
	}
	return l.Stop(ctx)
}
