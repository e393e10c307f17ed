package kvstore

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// settlerMetrics counts what a [settler] asks of the store.
type settlerMetrics struct {
	reads     prometheus.Counter
	writes    prometheus.Counter
	conflicts prometheus.Counter
	doubts    prometheus.Counter
}

func newSettlerMetrics(f promauto.Factory) settlerMetrics {
	return settlerMetrics{
		reads: f.NewCounter(prometheus.CounterOpts{
			Name: "headgate_record_reads_total",
			Help: "Reads of counters from the store.",
		}),
		writes: f.NewCounter(prometheus.CounterOpts{
			Name: "headgate_record_writes_total",
			Help: "Writes of counters to the store, one for all exchanges that waited for the counter.",
		}),
		conflicts: f.NewCounter(prometheus.CounterOpts{
			Name: "headgate_record_conflicts_total",
			Help: "Writes of counters that another writer was faster than; they were decided and written again.",
		}),
		doubts: f.NewCounter(prometheus.CounterOpts{
			Name: "headgate_record_doubts_total",
			Help: "Writes of counters that the store did not acknowledge in time.",
		}),
	}
}

// askResult is what became of an exchange that was sent to the counter's owner.
type askResult string

// The results.
const (
	askAnswered askResult = "answered" // settled by the owner, or refused for good
	askDeclined askResult = "declined" // the owner takes none now, or is gone
	askSilent   askResult = "silent"   // no answer in time
	// The owner did not say what became of it, and the deputy settled it.
	askDeputized askResult = "deputized"
)

// ownerMetrics counts what [owners] ask of one another.
type ownerMetrics struct {
	asks   map[askResult]prometheus.Counter
	served prometheus.Counter
}

func newOwnerMetrics(f promauto.Factory) ownerMetrics {
	asks := f.NewCounterVec(prometheus.CounterOpts{
		Name: "headgate_owner_asks_total",
		Help: "Exchanges sent to the owner of their counter, by what became of it.",
	}, []string{"result"})
	m := ownerMetrics{
		asks: make(map[askResult]prometheus.Counter),
		served: f.NewCounter(prometheus.CounterOpts{
			Name: "headgate_owner_served_total",
			Help: "Exchanges of other nodes that this node settled as the owner of their counter, or its deputy.",
		}),
	}
	for _, r := range []askResult{askAnswered, askDeclined, askSilent, askDeputized} {
		m.asks[r] = asks.WithLabelValues(string(r))
	}
	return m
}

// exchanged counts an exchange that ended, and how long it took.
func (m *metrics) exchanged(result exchangeResult, took time.Duration) {
	m.exchanges[result].Inc()
	m.exchangeSec.Observe(took.Seconds())
}
