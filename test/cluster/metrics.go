package cluster

import (
	"bytes"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Metric is the sum of a metric's series at the node that have all the labels,
// given as name and value in turn: Metric("headgate_decisions_total", "outcome",
// "denied"). The node must know the metric.
func (n *Node) Metric(name string, labels ...string) float64 {
	n.tb().Helper()
	family, known := n.metrics()[name]
	if !known {
		n.tb().Errorf("%s has no metric %s", n.Name(), name)
	}
	var sum float64
	for _, m := range family.GetMetric() {
		if labelled(m, labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// MetricsText is all that the node says of itself in the Prometheus format.
func (n *Node) MetricsText() string {
	n.tb().Helper()
	body, status, err := n.get("http://" + at(n.host, portAdmin) + "/metrics")
	if err != nil || status != 200 {
		n.tb().Fatalf("metrics of %s: status %d: %v", n.Name(), status, err)
	}
	return string(body)
}

func (n *Node) metrics() map[string]*dto.MetricFamily {
	n.tb().Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader([]byte(n.MetricsText())))
	if err != nil {
		n.tb().Fatalf("metrics of %s: %v", n.Name(), err)
	}
	return families
}

func labelled(m *dto.Metric, labels []string) bool {
	has := make(map[string]string)
	for _, l := range m.GetLabel() {
		has[l.GetName()] = l.GetValue()
	}
	for i := 0; i+1 < len(labels); i += 2 {
		if has[labels[i]] != labels[i+1] {
			return false
		}
	}
	return true
}

// SumMetric is the metric over all running nodes.
func (c *Cluster) SumMetric(name string, labels ...string) float64 {
	c.tb().Helper()
	var sum float64
	for _, n := range c.nodes {
		if n.Running() {
			sum += n.Metric(name, labels...)
		}
	}
	return sum
}
