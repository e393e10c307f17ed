// Package daemon is headgate serve: the graph of all packages, how a node comes
// up, and how it leaves.
//
// Coming up, nothing waits for the store: listeners are bound, configuration
// faults are told, and everything else happens behind. The joiner takes the
// store's secret, starts what needs the store, and then the checks of the
// lifecycle hold: the gate opens, and the node says that it is ready.
//
// Leaving is the sequence of shutdown.go. The hooks of the application run after
// it and find everything stopped.
package daemon
