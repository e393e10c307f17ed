// Package admin is the HTTP API for those who run Headgate: policies, counters
// and the state of the nodes. All of it is JSON; /openapi.json describes it.
//
//	GET    /v1/policies                        what every source holds
//	GET    /v1/policies/{function}/{version}   one policy; ?effective=true: the one in force
//	PUT    /v1/policies/{function}/{version}   write it; ?revision= compares, ?dryRun=true only tells
//	DELETE /v1/policies/{function}/{version}   remove it; ?revision= compares
//	POST   /v1/policies:validate               every fault of a text at once
//	GET    /v1/counters                        by function, version, tier, account, subject
//	GET    /v1/counters/{key}                  one counter, and which nodes hold leases on it
//	POST   /v1/counters/{key}/reset            forget what was spent, on every node
//	POST   /v1/counters/{key}/grant            add units in the current window
//	GET    /v1/status                          nodes, store, counters
//
// A request that fails is answered with {"error": {"code", "message", "field"}}.
//
// The package knows no store: what it needs is in the interfaces of [Parts],
// and whoever builds a node joins them to the real ones.
//
// Accounts are told to whoever may ask here, and subjects to nobody: a subject
// is only ever part of a question. Nothing of a request is logged.
package admin
