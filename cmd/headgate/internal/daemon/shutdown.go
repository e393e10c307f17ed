package daemon

import (
	"context"
	"errors"

	"go.uber.org/fx"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/lifecycle"
	"github.com/headgate-io/headgate/ratelimit"
)

// parts is what a shutdown stops.
type parts struct {
	fx.In

	Life    *lifecycle.Node
	Joiner  *ratelimit.Joiner
	Doors   *invocation.Doors
	Limiter *ratelimit.Limiter
	Bucket  *kvstore.Policies
	Store   *kvstore.Store
}

// shutdown is how a node leaves. Nobody was sent to a node that was never
// ready, so it needs no notice.
func (p parts) shutdown(cfg lifecycle.Config) lifecycle.Sequence {
	notice := cfg.DrainNotice
	if p.Life.State().Phase < lifecycle.Ready {
		notice = 0
	}
	return lifecycle.Sequence{
		{Name: "notice", Bound: notice, Func: p.notice},
		{Name: "front doors", Bound: cfg.DrainGrace, Func: p.Doors.Stop},
		{Name: "settle", Bound: cfg.SettleTimeout, Settles: true, Func: p.Limiter.Stop},
		{Name: "leave", Bound: cfg.LeaveTimeout, Func: p.leave},
	}
}

// notice says that the node is not ready, which also makes it give up the
// counters that it owns, and serves on.
func (p parts) notice(ctx context.Context) error {
	p.Life.Drain()
	p.Joiner.GiveUp()
	return lifecycle.Notice(ctx)
}

// leave ends the watching of policies first, which would else be told that the
// store is gone.
func (p parts) leave(ctx context.Context) error {
	return errors.Join(p.Joiner.Stop(ctx), p.Bucket.Stop(ctx), p.Store.Stop(ctx))
}
