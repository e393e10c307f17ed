// Package cluster runs Headgate as it is run in earnest: real processes, real
// signals, real NATS servers, folders that can be wiped, and a network that can
// be cut. Tests read like what they do:
//
//	c := cluster.Start(t, cluster.Options{Shape: cluster.Embedded})
//	budget := c.Fresh(cluster.Policy{Rates: "10-H"})
//	budget.Spend(4)
//	c.Node(1).Kill()
//	c.Node(1).Start()
//	c.AwaitReady()
//	budget.WantAdmitted(10, 6)
//
// A cluster has one of two shapes: nodes that carry embedded servers, or nodes
// beside an external NATS of three servers. Each cluster has loopback addresses
// of its own, so that no port is ever taken by somebody else while a process is
// away. Every process ends with the test, and with the test's process.
//
// What every process logged is searched, when the cluster ends, for the
// accounts and subjects that were asked for: finding one fails the test.
package cluster
