// Package policy takes policies from where they are written to where they are
// asked for: documents, their checks, the sources that hold them, and the [Set]
// that finds the one in force.
//
// # Documents
//
// A policy is written in YAML or JSON. [Parse] reads any number of them at once
// and refuses what it does not understand: every fault is reported, each with
// its path, value, reason and line, and no policy comes back beside a fault, so
// that a limit which cannot be read never silently disappears. [EncodeYAML] and
// [EncodeJSON] write the same form back; the JSON is canonical, the same policy
// always gives the same bytes.
//
// # Finding
//
// A [Set] asks its sources in a fixed order and the first one that knows the
// function wins. A source knows a function when it has a policy for (function,
// version) or for (function, *), and the more specific of the two is the
// answer. Only when no source knows the function are the (*, *) defaults
// consulted, in the same order. Sources that are asked function by function
// take part in the first round only.
//
// What listed sources hold is kept as one immutable index behind an atomic
// pointer: at most three map reads per look-up, however many policies there
// are, and no lock.
//
// # The last good one
//
// A source whose present state cannot be read keeps serving what it served
// before. The fault is logged and counted once, and the source recovers by
// itself when the state is good again.
//
// # Personal data
//
// Policies name accounts. [Fault] and [Warning] keep them out of their texts,
// which may be logged: an account is named by its place ("account.overrides[2]")
// and its line. The Path fields hold the accounts, for operators.
package policy
