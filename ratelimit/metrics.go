package ratelimit

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts what a [Limiter] does beside the fast path. Nothing here is
// labelled with an account, a subject or a function.
type metrics struct {
	leased   prometheus.Counter
	returned prometheus.Counter
	posted   prometheus.Counter
	failures prometheus.Counter
}

// newMetrics registers on reg; a nil reg keeps them private.
func newMetrics(reg prometheus.Registerer, l *Limiter) *metrics {
	f := promauto.With(reg)
	count := func(name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: "headgate", Name: name, Help: help})
	}
	gauge := func(name, help string, value func() float64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Namespace: "headgate", Name: name, Help: help}, value)
	}
	gauge("unsettled_units", "Units that this node has yet to hand back or to post.",
		func() float64 { return float64(l.Unsettled()) })
	gauge("cells", "Counters that this node remembers.",
		func() float64 { return float64(l.Cells()) })
	gauge("degraded", "1 while the store is away and decisions are made without it.",
		func() float64 {
			if l.Degraded() {
				return 1
			}
			return 0
		})
	return &metrics{
		leased:   count("leased_units_total", "Units charged to counters on behalf of this node."),
		returned: count("returned_units_total", "Units handed back unspent."),
		posted:   count("posted_units_total", "Units admitted first and charged later."),
		failures: count("failed_exchanges_total", "Exchanges that the store refused or did not answer."),
	}
}

// settled counts an exchange that was applied.
func (m *metrics) settled(x Exchange, g Grant) {
	m.leased.Add(float64(g.Units))
	for _, r := range x.Returns {
		m.returned.Add(float64(r.Units))
	}
	for _, p := range x.Posts {
		m.posted.Add(float64(p.Units))
	}
}
