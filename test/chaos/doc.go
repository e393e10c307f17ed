// Package chaos draws faults at random, but from a seed, against three real
// nodes under mixed load, and holds what the clients saw against the promise:
// how much was admitted in any span, who may get an error and when, and whether
// the history of an exact counter is one that a single counter could have had.
//
//	go test ./test/chaos                                 # 60 s, a seed of the day's own
//	go test ./test/chaos -chaos.for 30m -chaos.seed 7    # as long, and as often, as you like
//
// It has tests only.
package chaos
