// Package e2e tests Headgate as it is run: real processes against real NATS,
// real signals, real disks. It has tests only; what starts the processes is
// package cluster. The rows of the table that the product is judged by are in
// rows_test.go.
//
// Tests that run nodes with the product's own bound of an attempt also judge how
// long things take, so they do not run in parallel with others.
package e2e
