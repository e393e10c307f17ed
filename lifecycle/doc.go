// Package lifecycle says what a Headgate process is doing with its life: which
// phase it is in, whether it is ready, and how it leaves.
//
// # Phases
//
//	starting → joining → ready → draining → stopped
//
// A process may be told to leave at any instant, so starting and joining lead
// to draining and stopped too. Any other move is a [*MoveError] that names both
// phases.
//
// # Readiness
//
// A [Node] probes a set of named checks in a loop. It is ready for the first
// time when all of them have held for [Config.MinReady]. From then on the phase
// stays Ready; whether the node still *says* that it is ready while a check
// fails is asked of [WithSticky]: a node that can serve without its store stays
// in service and reports itself degraded, one that would deny everybody leaves
// service until the checks hold again.
//
// # Leaving
//
// A shutdown is data: a [Sequence] of steps, each with its own bound, run in
// order whatever became of the ones before. A second signal cuts every step
// before settlement short; settlement and what follows keep their bounds,
// because what was admitted must still be charged.
//
// Nothing here knows the store, the limiter or the listeners: checks and steps
// are functions.
package lifecycle
