// Package ports hands out TCP ports of 127.0.0.1 to tests whose servers must be
// told theirs before they start, or keep it while they are down.
//
// A port that the system picked and that was let go again may be picked for
// somebody else before the server listens on it: another listener, or the near
// end of a connection. These lie below all that systems pick by themselves (32768
// and up), in blocks of which each belongs to one process at a time.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
)

const (
	lowest  = 10_000
	size    = 500 // of a block; its first port is the lock
	blocks  = 44
	highest = lowest + blocks*size - 1
)

// process is the block of this one.
var process block

// block is a range of ports, given out in turn. All methods may be called
// concurrently.
type block struct {
	mu    sync.Mutex
	lock  net.Listener // who listens here owns the block
	first int
	given int
}

// Free returns n ports that nobody listens on. None of them is given out again
// before hundreds of others were, to this process or another one.
func Free(tb testing.TB, n int) []int {
	tb.Helper()
	ports, err := process.take(n)
	if err != nil {
		tb.Fatalf("ports: %v", err)
	}
	return ports
}

func (b *block) take(n int) ([]int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.own(); err != nil {
		return nil, err
	}
	var ports []int
	for range size {
		if len(ports) == n {
			return ports, nil
		}
		port := b.first + 1 + b.given%(size-1)
		b.given++
		if l, err := listen(port); err == nil {
			_ = l.Close()
			ports = append(ports, port)
		}
	}
	return nil, fmt.Errorf("%d of %d wanted are free", len(ports), n)
}

// own makes a block that nobody has this one's. Called with the lock held.
func (b *block) own() error {
	if b.lock != nil {
		return nil
	}
	var errs []error
	for _, i := range rand.Perm(blocks) {
		first := lowest + i*size
		l, err := listen(first)
		if err == nil {
			b.lock, b.first = l, first
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func listen(port int) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}
