// Package nvcf asks the NVCF policy API for the policies of functions.
//
// # What it keeps
//
// An answer, also "there is none", is remembered for Config.CacheTTL, a little
// less for each so that they do not all end together. What is in use is asked
// for again before that, so that nobody waits for it.
//
// # When the API fails
//
// A policy that was known stays in force, marked stale, and nobody waits: the
// API is asked again behind the scenes. So it is with an answer that holds a
// rate which cannot be read; the fault names the function and the field, never
// an account. Of a function that was never known nothing is limited, which is
// reported as degraded and counted; if it has readable rates beside the one
// that is not, those are in force.
//
// One question per function and version is under way at a time. It lives on the
// source's own context, so a caller that gives up spoils it for nobody, and
// nobody waits longer than Config.Timeout.
//
// # How limits translate
//
//	rate             account.rates: for each account
//	perNcaIdConfigs  account.overrides
//	excludedNcaIds   account.exclude
//	perUserRate      subject.rates: for each caller of each account
//
// Their windows are fixed, opened by the first call; here rates are sliding
// unless Config.Algorithm says otherwise, which admits no more in any span.
package nvcf
