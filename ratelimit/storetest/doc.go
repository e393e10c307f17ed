// Package storetest is what tests need around a [ratelimit.Store]: one in
// memory that fails on demand, a clock that is off on demand, and the
// conformance suite that every store passes.
//
// [Memory] settles with [ratelimit.Settle], as every store does, and starts no
// goroutine, so it may be used inside a testing/synctest bubble. What goes
// wrong with an exchange is a [Fault]; who decides it is a [FaultFunc].
//
// [Run] holds a store to the contract of [ratelimit.Store]. It speaks to the
// store in real time; [Cases] are the same cases one by one, to be run inside
// bubbles.
package storetest
