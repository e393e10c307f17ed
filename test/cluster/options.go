package cluster

import (
	"time"
)

// Shape is what the nodes of a cluster keep their counters in.
type Shape int

// The shapes.
const (
	// Embedded: every node carries a NATS server; together they are a cluster.
	// One node is a server alone.
	Embedded Shape = iota
	// External: nodes beside NATS servers that are processes of their own.
	External
)

// String is the shape's name in the names of tests.
func (s Shape) String() string { return [...]string{"embedded", "external"}[s] }

// Shapes are all shapes.
func Shapes() []Shape { return []Shape{Embedded, External} }

// Options is what a test wants of a cluster. The zero Options is three nodes
// with embedded servers.
type Options struct {
	Shape Shape
	// Nodes is how many headgate processes; 0 means 3.
	Nodes int
	// Servers is how many external NATS servers; 0 means 3.
	Servers int
	// Policies are all that [Cluster.Fresh] will be asked for; none means
	// "10-H" in the modes leased and exact.
	Policies []Policy
	// Attempt is limiter.attempt. 0 means 1 s and not the product's default: a
	// test that counts must not be decided by how fast its machine is.
	Attempt time.Duration
	// Cuttable puts proxies into the network, so that nodes can be cut off.
	Cuttable bool
	// Clocks are by how much the wall clocks of the nodes are off, the first
	// node's first.
	Clocks []time.Duration
	// DrainNotice is drain.notice. 0 means 200 ms.
	DrainNotice time.Duration
	// DrainGrace is drain.grace. 0 means the product's default.
	DrainGrace time.Duration
	// Config are further lines of the configuration file.
	Config string
	// Later leaves the processes to be started by the test.
	Later bool
}

// Default settings of a cluster under test.
const (
	defaultNodes   = 3
	countedAttempt = time.Second
	shortNotice    = 200 * time.Millisecond
	// ProductAttempt is the product's own default of limiter.attempt.
	ProductAttempt = 100 * time.Millisecond
)

func (o Options) withDefaults() Options {
	if o.Nodes == 0 {
		o.Nodes = defaultNodes
	}
	if o.Servers == 0 {
		o.Servers = defaultNodes
	}
	if o.Attempt == 0 {
		o.Attempt = countedAttempt
	}
	if o.DrainNotice == 0 {
		o.DrainNotice = shortNotice
	}
	if len(o.Policies) == 0 {
		o.Policies = []Policy{{Rates: "10-H"}, {Rates: "10-H", Consistency: "exact"}}
	}
	return o
}

// replicas of every bucket.
func (o Options) replicas() int {
	of := o.Nodes
	if o.Shape == External {
		of = o.Servers
	}
	if of < 3 {
		return 1
	}
	return 3
}
