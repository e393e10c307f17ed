package invocation

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/headgate-io/headgate/ratelimit"
)

// What became of an invocation, as headgate_decisions_total spells it: the
// outcomes of a decision, and below them those of an invocation without one.
const (
	outcomeShadowed = "shadowed" // denied by a policy that is not enforced, so admitted
	outcomeInvalid  = "invalid"  // refused for what it is
	outcomeRefused  = "refused"  // the gate was not open
	outcomeCanceled = "canceled" // the caller gave up, or its deadline passed
	outcomeFailed   = "failed"   // no decision could be made

	none = "none" // as a tier: nothing limited it; as a mode: no policy applies
)

// Sizes of the table of prebuilt counters.
const (
	outcomes = 4 // Denied, Admitted, Impossible, and shadowed
	tiers    = ratelimit.Tiers + 1
	modes    = 4 // Leased, Exact, Delayed, and no policy

	shadowed = outcomes - 1
	noPolicy = modes - 1
)

// metrics counts decisions. Every child is built up front: a decision costs an
// index, an atomic addition and an observation, and no label value comes from a
// request.
type metrics struct {
	decisions [outcomes][tiers][modes]prometheus.Counter
	degraded  [outcomes]prometheus.Counter
	seconds   prometheus.Observer

	invalid, refused, canceled, broken prometheus.Counter
	panics                             prometheus.Counter
}

// newMetrics registers on reg; a nil reg keeps the metrics private.
func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	byOutcome := f.NewCounterVec(prometheus.CounterOpts{
		Namespace: "headgate",
		Name:      "decisions_total",
		Help:      "Invocations by what became of them, the tier that limited them and the consistency of their policy.",
	}, []string{"outcome", "tier", "mode"})
	degraded := f.NewCounterVec(prometheus.CounterOpts{
		Namespace: "headgate",
		Name:      "degraded_decisions_total",
		Help:      "Decisions made without the store or without a policy source, by what became of them.",
	}, []string{"outcome"})
	m := &metrics{
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Namespace: "headgate",
			Name:      "decision_seconds",
			Help:      "Time from a valid invocation to its decision.",
			Buckets: []float64{
				1e-6, 2.5e-6, 1e-5, 2.5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 0.1, 0.25, 1,
			},
		}),
		panics: f.NewCounter(prometheus.CounterOpts{
			Namespace: "headgate",
			Name:      "panics_recovered_total",
			Help:      "Requests that ended in a panic, which was answered as an internal error.",
		}),
		invalid:  byOutcome.WithLabelValues(outcomeInvalid, none, none),
		refused:  byOutcome.WithLabelValues(outcomeRefused, none, none),
		canceled: byOutcome.WithLabelValues(outcomeCanceled, none, none),
		broken:   byOutcome.WithLabelValues(outcomeFailed, none, none),
	}
	for o := range outcomes {
		name := outcomeName(o)
		m.degraded[o] = degraded.WithLabelValues(name)
		for t := range tiers {
			for mode := range modes {
				m.decisions[o][t][mode] = byOutcome.WithLabelValues(name, ratelimit.Tier(t).String(), modeName(mode))
			}
		}
	}
	return m
}

func outcomeName(o int) string {
	if o == shadowed {
		return outcomeShadowed
	}
	return ratelimit.Outcome(o).String()
}

func modeName(mode int) string {
	if mode == noPolicy {
		return none
	}
	return ratelimit.Consistency(mode).String()
}

// decided counts one decision.
func (m *metrics) decided(d ratelimit.Decision, took time.Duration) {
	outcome, mode := int(d.Outcome), noPolicy
	if d.Policy != nil {
		mode = int(d.Policy.Consistency)
	}
	if d.Outcome != ratelimit.Admitted && d.Allowed() {
		outcome = shadowed
	}
	m.decisions[outcome][d.Tier][mode].Inc()
	if d.Degraded {
		m.degraded[outcome].Inc()
	}
	m.seconds.Observe(took.Seconds())
}

// failed counts an invocation that got no decision.
func (m *metrics) failed(err error) {
	switch {
	case errors.Is(err, ratelimit.ErrInvalid):
		m.invalid.Inc()
	case errors.Is(err, ratelimit.ErrStopped):
		m.refused.Inc()
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		m.canceled.Inc()
	default:
		m.broken.Inc()
	}
}
