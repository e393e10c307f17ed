package e2e

import (
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// A rolling restart of three nodes with embedded servers under 200 checks per
// second, by clients that ask another node when theirs is gone: no call fails,
// warm decisions stay fast, and the roll is soon over. The notice is the
// product's own. It judges speed, so it does not run beside others.
func TestRollingRestartIsNotNoticed(t *testing.T) {
	const whole = 30 * time.Second
	policy := cluster.Policy{Rates: "100000-H"}
	c := cluster.Start(t, cluster.Options{
		Shape: cluster.Embedded, Policies: []cluster.Policy{policy},
		Attempt: cluster.ProductAttempt, DrainNotice: 3 * time.Second,
	})
	load := c.Offer(cluster.Plan{Callers: []*cluster.Caller{c.Fresh(policy)}, PerSecond: 200, Retry: true})
	control := c.Noise()
	pause(2 * time.Second) // the counter is warm
	began := time.Now()
	roll(c, (*cluster.Node).Start)
	took := time.Since(began)
	calls, noise := load.Stop(), control.Stop()
	t.Logf("the roll took %v: %s", took, told(calls))
	t.Logf("control: %s", told(noise))
	wantDecided(t, calls, never)
	if took > whole {
		t.Errorf("the roll took %v, want less than %v", took, whole)
	}
	for _, call := range calls {
		if !call.Allowed {
			t.Fatal("a call was denied that no limit denies")
		}
	}
	wantWarm(t, calls, noise)
}
