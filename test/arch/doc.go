// Package arch holds the tree to the picture that the design draws of it: who
// may import whom, where fx and NATS may appear, what stands at the top, and
// that what is exported is explained. It has tests only.
package arch
