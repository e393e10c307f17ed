package kvstore

import (
	"context"
	"math/rand/v2"
	"time"
)

// deputySubject goes before a node's name to make the subject on which it takes
// exchanges that an owner left in doubt. It is not the owners': a release that
// knows no deputies would settle them as if nobody had before.
const deputySubject = "headgate.deputy."

// askDeputy asks the deputy of a counter for an exchange that the owner left in
// doubt. All who ask one owner miss its answer together: were each to go to the
// store, they would fight over one key for longer than anybody waits. The deputy
// settles for all of them, as the owner does. Where it does not, or is this node,
// the owner's reply stands: nobody but the record can say more.
func (o *owners) askDeputy(ctx context.Context, owner string, a ask, said reply) reply {
	deputy := o.places.deputy(a.x.Key, owner)
	if deputy == o.node {
		return said
	}
	if deputy != "" && ctx.Err() == nil {
		a.patience = o.patience(ctx)
		if r := o.ask(ctx, deputy, a); r.final && r.err == nil {
			r.told = askDeputized
			return r
		}
	}
	o.stepAside(ctx)
	return said
}

// stepAside waits for a moment: many nodes may have missed an answer together,
// and a late owner or deputy settles for all of them if they leave it the time.
func (o *owners) stepAside(ctx context.Context) {
	timer := time.NewTimer(rand.N(o.cfg.Answer / 4))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
