package kvstore

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestMetricNames(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	newMetrics(reg)
	problems, err := testutil.GatherAndLint(reg)
	if err != nil || len(problems) != 0 {
		t.Fatalf("lint: %v %v", problems, err)
	}
}

// A joined store shows how many nodes there are and how good its clock is.
func TestMetrics_ofAJoinedStore(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	s := startStore(t, testConfig(t), WithRegisterer(reg))
	awaitJoined(t, s)
	if got := testutil.ToFloat64(s.metrics.nodes); got != 1 {
		t.Errorf("headgate_nodes = %v, want 1", got)
	}
	if got := testutil.ToFloat64(s.metrics.clockError); got <= 0 || got > 1 {
		t.Errorf("headgate_clock_error_seconds = %v", got)
	}
	if got := testutil.ToFloat64(s.metrics.clockOffset); got < -1 || got > 1 {
		t.Errorf("headgate_clock_offset_seconds = %v on one machine", got)
	}
}
