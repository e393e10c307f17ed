// Package sim runs fleets of limiters through bad days, in virtual time, and
// holds every admission to the promise. It has tests only.
//
// A seed makes a scenario: nodes, policies of every algorithm and consistency,
// traffic, a network that loses and delays, and things that happen (partitions,
// outages, crashes, restarts, policy changes, clocks set anew within their
// stated error). The limiters are those of production, over a store in memory
// that settles as every store does. A ledger keeps every admission with the
// instants between which it was decided, and every exchange that the store
// applied; the checks compare it with what the limits allow.
//
//	go test ./test/sim                         200 seeds
//	go test ./test/sim -seeds 20000 -timeout 0 as many as you like
//	go test ./test/sim -seed 4711 -v           one again, with what happened
//
// What a seed fixes is the scenario and the fault of every exchange. Goroutines
// that are woken at the same virtual instant still run in the order that the
// runtime likes: a failure that depends on it may need -count.
//
// # What is checked
//
//   - leased and exact: never more than the limit in any span of one period
//     (sliding), in any window (fixed), above the level that drains (token
//     bucket; its span grows by one lease life).
//   - delayed: the limit, plus what the others admitted and the node could not
//     have seen.
//   - degraded: `deny` admits nothing, `local` no more than the node's share of
//     what it last saw.
//   - Nothing waits longer than its bound, and no error but its own reaches a
//     caller.
//   - Once all is well again everything owed is settled, and the store's
//     counters account for every admission; where nothing went wrong, for no
//     more than those.
//   - A node that only denies keeps reading.
//   - A counter left alone becomes fully available again.
package sim
