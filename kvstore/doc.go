// Package kvstore keeps counters, policies and the list of nodes in NATS
// JetStream. It is the only package of the product that knows NATS.
//
// # Shapes
//
// A [Store] reaches JetStream in one of three ways, which [Config] chooses:
//
//   - alone: a server in this process, without any listener;
//   - a member: a server in this process that forms a cluster with those of
//     other nodes, over [Cluster.Listen] and [Cluster.Routes];
//   - external: a client of the servers at [Config.URL], which it does not
//     manage.
//
// # Promises
//
//   - [Store.Start] never waits for the store. Joining runs behind it, for as
//     long as it takes, and the process is never ended for an absent store.
//   - Until the store is joined an exchange is [ratelimit.ErrUnavailable], at
//     once.
//   - Once joined it stays joined: a store that goes away makes exchanges fail
//     and [Store.Checks] say so, and everything goes on when it returns.
//   - [Store.Clock] is one clock for all nodes: that of the store as it was
//     when the first of the running nodes joined, carried on by the nodes'
//     monotonic clocks. A step of a wall clock, of a node or of a server, does
//     not move it.
package kvstore
