// Package chart renders the Helm chart with the real helm and holds it to what
// it promises: that every object is one the API server would take, that what
// does not fit together is refused with the reason, that what is rendered
// starts the real program, and that no upgrade touches what cannot be changed.
//
// live is a program that does the rest on a real control plane; it is not part
// of the ordinary run.
//
// What is generated from the chart and the program is written by
//
//	go test ./test/chart -run 'README|Config|Immutable' -update
package chart
