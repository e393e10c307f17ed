package policy

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics tells of a [Set] and its sources. The only label is the source's
// name, of which there are three.
type metrics struct {
	policies prometheus.Gauge
	revision prometheus.Gauge
	faults   map[string]prometheus.Counter
}

// newMetrics registers on reg; a nil reg keeps the metrics private.
func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	faults := f.NewCounterVec(prometheus.CounterOpts{
		Name: "headgate_policy_errors_total",
		Help: "Distinct faults met in a policy source, whose last good policies stayed in force.",
	}, []string{"source"})
	m := &metrics{
		policies: f.NewGauge(prometheus.GaugeOpts{
			Name: "headgate_policies",
			Help: "Policies known from sources that list theirs.",
		}),
		revision: f.NewGauge(prometheus.GaugeOpts{
			Name: "headgate_policy_revision",
			Help: "Fingerprint of the listed policies: nodes that hold the same ones show the same number.",
		}),
		faults: make(map[string]prometheus.Counter),
	}
	for _, source := range []string{File, Bucket, NVCF} {
		m.faults[source] = faults.WithLabelValues(source)
	}
	return m
}
