// Package counter is the arithmetic of rate limits: what a [Counter] has
// consumed, and how much its [Rate]s still admit.
//
// It is arithmetic only. Nothing here reads a clock, touches a network, takes a
// lock, logs or counts: callers hand in the instant and the counter. The same
// values always give the same answer, so a compare-and-swap loop may simply run
// it again. Reading never allocates.
//
// # Model
//
// A counter holds one [Window] for each period and algorithm that was ever
// charged, not one for each limit: an edited limit keeps what was spent, and a
// limit lowered below that leaves 0, never less.
//
//	sliding       slice length l = period/60, rounded up to a nanosecond
//	              a charge counts in the slice in which its units end
//	              available = units - all that is counted in slices k-60 and later,
//	              k being the slice of now
//	fixed         opens at the first charge, closes one period later
//	              available = units - count
//	token-bucket  level' = level - units*elapsed/period + n, never below 0
//	              available = burst - level, rounded down
//
// The level of a token bucket is kept in whole period-ths of a unit, computed
// with 128 bits: nothing is rounded away and nothing overflows, for units and
// bursts up to 2^53, periods from 1 s to 366 days and any instants. Sums that
// leave int64 are held at its end.
//
// # Leases
//
// [Counter.Charge] takes the instant until which its units may be spent; see
// [Counter.LeaseEnd]. What was not spent comes back with [Counter.Refund].
//
// # Guarantees
//
// With every charge no larger than [Counter.Available] said, and U the largest
// limit among those charges:
//
//   - sliding admits at most U units in any span of one period, the span's two
//     ends included, with leases spent anywhere up to their end and refunds of
//     what was not spent. It may take a unit up to 1/60 of a period, and a lease's
//     life, longer than an exact window to admit again.
//   - fixed admits at most U units per window.
//   - token-bucket admits at most burst + units*span/period in any span. With
//     leases the span grows by one life. Leases that come back unspent also give
//     back what drained while they were held; the sum may then be higher by the
//     most units that were held so at one time, and not more.
//   - [Counter.NextAt] is exact: one nanosecond earlier is still denied.
//   - Methods that do not change a counter are the only ones a denial needs.
//   - A charge and its refund leave the counter as it was, apart from Seen, while
//     the charge is still counted and nothing drained or closed in between.
//
// [Counter.Post] and [Counter.Credit] may go past a limit; that is what they are
// for.
//
// # Time
//
// Instants are the store's. A counter's time never moves back: an instant before
// Counter.Seen counts as Seen. A clock that steps back therefore only makes
// callers wait; one that steps forward lets windows pass, as time does.
package counter
