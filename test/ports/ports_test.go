package ports

import (
	"slices"
	"testing"
)

// TestFree: what one process is given is free, its own, and not what a system
// picks by itself.
func TestFree(t *testing.T) {
	given := Free(t, 200)
	given = append(given, Free(t, 200)...)
	slices.Sort(given)
	if n := len(slices.Compact(slices.Clone(given))); n != 400 {
		t.Errorf("%d different ports, want 400", n)
	}
	for _, port := range given {
		if port <= process.first || port >= process.first+size || port < lowest || port > highest {
			t.Fatalf("port %d is not of this process's block from %d", port, process.first)
		}
		l, err := listen(port)
		if err != nil {
			t.Fatal(err)
		}
		_ = l.Close()
	}
	if highest >= 32768 {
		t.Errorf("ports go up to %d, into those that Linux picks by itself", highest)
	}
}

// TestTaken: a port on which somebody listens is passed over, also when its turn
// comes again, and a block is one process's at a time.
func TestTaken(t *testing.T) {
	busy := Free(t, 1)[0]
	l, err := listen(busy)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for range 4 {
		if slices.Contains(Free(t, size/2), busy) {
			t.Fatalf("%d was given out while somebody listened on it", busy)
		}
	}
	other := new(block)
	if _, err := other.take(1); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.lock.Close() }()
	if other.first == process.first {
		t.Errorf("the block from %d has two owners", other.first)
	}
	if _, err := process.take(size); err == nil {
		t.Error("more ports than a block has, and no error")
	}
}
