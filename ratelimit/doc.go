// Package ratelimit decides whether an invocation may run.
//
// A [Limiter] finds the [Policy] of the invocation's function, and for each tier
// of it a counter that all nodes share through a [Store]. Counters change only
// in exchanges ([Exchange]), each settled in one atomic step by [Settle].
//
// # Promise
//
// With "the limit" meaning what package counter guarantees per algorithm:
//
//	leased   never more than the limit. Units are charged before they are
//	         spent, to the slice in which their lease ends. A node that dies
//	         strands at most its own demand over one lease life (100 ms), which
//	         is then too few admitted, never too many.
//	exact    never more than the limit; nothing is asked ahead, so a node that
//	         dies strands nothing. One exchange per decision, shared by all who
//	         wait for the same counter.
//	delayed  the limit, plus what the other nodes admit within one sync
//	         interval. A node that dies loses what it admitted since the last
//	         sync.
//
// A denial charges nothing, an admission is charged once on every counter that
// applies to it. While the store is away a policy's OnStoreFailure decides, the
// decision says so, and what was admitted is posted when the store returns.
//
// An invocation that waits for the store counts as admitted at the instant at
// which the store decided, not when the answer arrived.
//
// # How it works
//
// A cell is a node's side of one counter. Its lease is a number of units already
// charged; the fast path takes from it with one atomic operation, and neither
// locks nor allocates. Whoever finds no unit waits for the cell's exchange: one
// is under way at a time, and all who wait share the next one. A cell asks ahead
// for what it spends in one lease life, at most a quarter of what is available,
// so the last units are taken one by one. What nobody spent goes back.
//
// A cell that was told "none before t" denies by itself until t, and has the
// counter read again once per sync interval for as long as it is asked.
package ratelimit
