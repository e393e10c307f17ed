package kvstore

import (
	"errors"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/test/ports"
)

// While the store is away status tells the nodes as they were heard last, beside
// an error.
func TestStore_statusWhileAway(t *testing.T) {
	t.Parallel()
	spec := serverSpec{Port: ports.Free(t, 1)[0], StoreDir: t.TempDir()}
	nats := startProcess(t, spec)
	s := startStore(t, externalConfig(t, spec.Port), WithVersion("v1"))
	awaitJoined(t, s)
	s.SetPhase("ready")
	known := func() bool {
		all := s.nodes.members.known()
		return len(all) == 1 && all[0].Phase == "ready"
	}
	await(t, "the node hears itself", known)
	nats.kill()
	await(t, "the node notices", func() bool { return !s.Reachable() })
	st, err := s.Status(t.Context())
	if !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("error %v, want ErrUnavailable", err)
	}
	if len(st.Nodes) != 1 {
		t.Fatalf("nodes %+v, want this one", st.Nodes)
	}
	n := st.Nodes[0]
	if n.Name != s.cfg.NodeName || n.Phase != "ready" || n.Version != "v1" || !n.Alive || n.Uptime <= 0 || n.Silent > time.Second {
		t.Errorf("node %+v", n)
	}
}
