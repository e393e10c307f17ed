package lifecycle

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics shows the state of a [Node].
type metrics struct {
	ready prometheus.Gauge
	phase [phases]prometheus.Gauge
}

// newMetrics registers on reg; a nil reg keeps the gauges private.
func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	byPhase := f.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "headgate",
		Name:      "phase",
		Help:      "1 for the phase that the node is in, 0 for the others.",
	}, []string{"phase"})
	m := &metrics{ready: f.NewGauge(prometheus.GaugeOpts{
		Namespace: "headgate",
		Name:      "ready",
		Help:      "1 while the node says that it is ready, else 0.",
	})}
	for p := range m.phase { // every series exists from the first scrape
		m.phase[p] = byPhase.WithLabelValues(Phase(p).String())
	}
	return m
}

func (m *metrics) show(s State) {
	for p := range m.phase {
		m.phase[p].Set(number(Phase(p) == s.Phase))
	}
	m.ready.Set(number(s.Ready))
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
