// Package invocation is what invocations of functions pass through on their
// way to a decision: the [Gate], and its front doors for gRPC and HTTP.
//
// # The gate
//
// Every front door asks one [Gate]. It refuses what cannot be decided as it is
// (see [Gate.Decide]), counts and times every decision, answers [ErrNotReady]
// until somebody opens it, and knows how many decisions are in flight. What
// decides is a [Decider], which package ratelimit provides.
//
// # Front doors
//
//   - [GRPCServer]: nvcfratelimiter.RateLimitService, grpc.health.v1.Health and
//     reflection. A limited call is an OK reply that says DISALLOW.
//   - [HTTPServer] with [NewHandler]: POST /v1/check, and /v1/authorize for
//     proxies that ask by header.
//   - [Gate.Middleware]: a platform's own HTTP pipeline.
//
// # Privacy
//
// Subjects are personal data, and accounts say who spends. Neither is put into
// a log, a metric or an error here: an error names the field and what is wrong
// with it, never the value.
package invocation
