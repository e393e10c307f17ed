package kvstore

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts what a [Store] does. No label holds a key, a subject, an
// account or a node.
type metrics struct {
	exchanges   map[exchangeResult]prometheus.Counter
	exchangeSec prometheus.Histogram
	nodes       prometheus.Gauge
	clockOffset prometheus.Gauge
	clockError  prometheus.Gauge
	clockSteps  prometheus.Counter
	heartbeats  map[bool]prometheus.Counter // by whether it succeeded

	settlerMetrics
	ownerMetrics
}

// exchangeResult is how an exchange ended, from this node's view.
type exchangeResult string

// The results.
const (
	exchangeApplied     exchangeResult = "applied"     // a write was made, or joined
	exchangeRead        exchangeResult = "read"        // nothing had to be written
	exchangeUnavailable exchangeResult = "unavailable" // nothing was applied
	exchangeUnknown     exchangeResult = "unknown"     // it may have been applied
	exchangeRefused     exchangeResult = "refused"     // the record has a newer format
)

// newMetrics registers on reg; a nil reg keeps the metrics private.
func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	results := f.NewCounterVec(prometheus.CounterOpts{
		Name: "headgate_exchanges_total",
		Help: "Exchanges with the store, by how they ended.",
	}, []string{"result"})
	beats := f.NewCounterVec(prometheus.CounterOpts{
		Name: "headgate_heartbeats_total",
		Help: "Heartbeats of this node, by result.",
	}, []string{"result"})
	m := &metrics{
		exchanges: make(map[exchangeResult]prometheus.Counter),
		exchangeSec: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "headgate_exchange_seconds",
			Help:    "Time of an exchange with the store, waiting for others included.",
			Buckets: []float64{.00025, .0005, .001, .002, .005, .01, .02, .05, .1, .25, 1},
		}),
		nodes: f.NewGauge(prometheus.GaugeOpts{
			Name: "headgate_nodes",
			Help: "Nodes last known to be alive, this one included.",
		}),
		clockOffset: f.NewGauge(prometheus.GaugeOpts{
			Name: "headgate_clock_offset_seconds",
			Help: "The store's clock minus this machine's wall clock.",
		}),
		clockError: f.NewGauge(prometheus.GaugeOpts{
			Name: "headgate_clock_error_seconds",
			Help: "Bound on the error of the store's clock as this node knows it.",
		}),
		clockSteps: f.NewCounter(prometheus.CounterOpts{
			Name: "headgate_clock_steps_total",
			Help: "Steps of the store servers' wall clocks that this node did not follow.",
		}),
		heartbeats: map[bool]prometheus.Counter{
			true:  beats.WithLabelValues("ok"),
			false: beats.WithLabelValues("failed"),
		},
	}
	for _, r := range []exchangeResult{
		exchangeApplied, exchangeRead, exchangeUnavailable, exchangeUnknown, exchangeRefused,
	} {
		m.exchanges[r] = results.WithLabelValues(string(r))
	}
	m.settlerMetrics = newSettlerMetrics(f)
	m.ownerMetrics = newOwnerMetrics(f)
	return m
}
