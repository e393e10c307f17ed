package daemon

import (
	"go.uber.org/fx"

	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// adminNeeds is what the admin API is joined to.
type adminNeeds struct {
	fx.In

	Bucket   *kvstore.Policies
	Set      *policy.Set
	Store    *kvstore.Store
	Operator *kvstore.Operator
	Keys     *ratelimit.Keyring
	Clock    ratelimit.Clock
	Status   statusSource
}

func adminParts(n adminNeeds) admin.Parts {
	return admin.Parts{
		Policies: policyStore{n.Bucket}, View: n.Set,
		Counters: counterStore{n.Store}, Operator: counterOperator{n.Operator},
		Keys: n.Keys, Clock: n.Clock, Status: n.Status.status,
	}
}
