package cluster

import (
	"bytes"
	"net"
	"sync"
	"time"
)

// chunk is bytes on their way, and when they arrive.
type chunk struct {
	data []byte
	due  time.Time
}

const (
	chunkBytes = 32 << 10
	// chunksUnderway bounds what a delayed connection holds.
	chunksUnderway = 256
)

// copy carries bytes one way until either end is closed, and then closes both.
func (p *proxy) copy(to, from net.Conn) {
	underway := make(chan chunk, chunksUnderway)
	var arriving sync.WaitGroup
	arriving.Go(func() { p.arrive(to, from, underway) })
	p.depart(from, underway)
	close(underway)
	arriving.Wait()
	to.Close()
	from.Close()
}

// depart reads until the end.
func (p *proxy) depart(from net.Conn, underway chan<- chunk) {
	buffer := make([]byte, chunkBytes)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			_, delay := p.state()
			select {
			case underway <- chunk{bytes.Clone(buffer[:n]), time.Now().Add(delay)}:
			case <-p.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// arrive writes what is due, as long as the network is whole. After a failed
// write it closes the other side and takes the rest without writing it.
func (p *proxy) arrive(to, from net.Conn, underway <-chan chunk) {
	broken := false
	for c := range underway {
		if broken || !p.sleepUntil(c.due) || !p.passes() {
			continue
		}
		if _, err := to.Write(c.data); err != nil {
			broken = true
			from.Close()
		}
	}
}

// sleepUntil reports false when the proxy ends first.
func (p *proxy) sleepUntil(due time.Time) bool {
	wait := time.Until(due)
	if wait <= 0 {
		return true
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-p.ctx.Done():
		return false
	}
}
