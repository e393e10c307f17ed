package nvcf

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// result is how one question to the API ended.
type result int

// The results.
const (
	known   result = iota // a policy
	absent                // there is none
	invalid               // an answer that cannot be read
	failed                // no answer
	results
)

func (r result) String() string { return [...]string{"known", "absent", "invalid", "failed"}[r] }

type metrics struct {
	questions [results]prometheus.Counter
	seconds   prometheus.Histogram
	stale     prometheus.Gauge
	unlimited prometheus.Counter
}

// newMetrics registers on reg; a nil reg keeps the metrics private.
func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	questions := f.NewCounterVec(prometheus.CounterOpts{
		Name: "headgate_policy_api_requests_total",
		Help: "Questions to the NVCF policy API, by how they ended.",
	}, []string{"result"})
	m := &metrics{
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "headgate_policy_api_request_seconds",
			Help:    "Time of a question to the NVCF policy API.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5},
		}),
		stale: f.NewGauge(prometheus.GaugeOpts{
			Name: "headgate_policy_api_stale",
			Help: "Policies of the NVCF policy API in force that it did not confirm when last asked.",
		}),
		unlimited: f.NewCounter(prometheus.CounterOpts{
			Name: "headgate_policy_api_unlimited_total",
			Help: "Look-ups answered with no limit because the NVCF policy API failed and never told one.",
		}),
	}
	for r := range results {
		m.questions[r] = questions.WithLabelValues(r.String())
	}
	return m
}
