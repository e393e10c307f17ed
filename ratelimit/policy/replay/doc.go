// Package replay tells what a set of policies would have done to invocations
// that were recorded, beside what another set would have.
//
// It is arithmetic in virtual time: no store, no clock, no waiting. Each
// invocation is decided by the very functions that decide live ones
// ([counter.Counter] and its rates), as one node in exact mode would: all tiers
// or none, in the order subject, account, total, and a denial charges nothing.
// Both sets start with nothing spent. What leases hold back, and what is
// admitted while the store is away, is not part of it.
//
// # The log
//
// One JSON object a line; other fields are ignored.
//
//	time      RFC 3339, or seconds since 1970; required
//	function  required
//	version, account, subject
//	cost      default 1; 0 looks without charging
//
// The lines should be in the order of time. As for live counters, time does not
// move back: a line that is older than one before it counts as being as old.
//
// # Personal data
//
// A [Result] names accounts, for operators, and never a subject: the line
// number leads to it.
package replay
