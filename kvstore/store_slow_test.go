package kvstore

import (
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/ports"
)

// slowLink is a way to a port of this machine that takes a while each way.
type slowLink struct {
	listener net.Listener
	target   string
	delay    time.Duration // one way

	mu    sync.Mutex
	conns []net.Conn
	flows sync.WaitGroup
}

func newSlowLink(t *testing.T, port int, delay time.Duration) *slowLink {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &slowLink{listener: l, target: fmt.Sprintf("127.0.0.1:%d", port), delay: delay}
	s.flows.Go(s.accept)
	t.Cleanup(s.close)
	return s
}

func (s *slowLink) port() int { return s.listener.Addr().(*net.TCPAddr).Port }

func (s *slowLink) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	for _, c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	s.flows.Wait()
}

func (s *slowLink) accept() {
	for {
		near, err := s.listener.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", s.target)
		if err != nil {
			_ = near.Close()
			continue
		}
		s.mu.Lock()
		s.conns = append(s.conns, near, far)
		s.mu.Unlock()
		s.flows.Go(func() { s.carry(far, near) })
		s.flows.Go(func() { s.carry(near, far) })
	}
}

// carry moves bytes, each after the delay, and never holds up what comes after
// them longer than that.
func (s *slowLink) carry(to, from net.Conn) {
	type parcel struct {
		data []byte
		due  time.Time
	}
	queue := make(chan parcel, 1024)
	s.flows.Go(func() {
		defer to.Close()
		for p := range queue {
			timer := time.NewTimer(time.Until(p.due))
			<-timer.C
			if _, err := to.Write(p.data); err != nil {
				break
			}
		}
		for range queue { // let the reader end
		}
	})
	defer close(queue)
	for {
		buf := make([]byte, 16<<10)
		n, err := from.Read(buf)
		if n > 0 {
			queue <- parcel{buf[:n], time.Now().Add(s.delay)}
		}
		if err != nil {
			return
		}
	}
}

// Every round trip takes 50 ms, then 200 ms: the node is joined in under five
// seconds, its checks hold, and the clock's error tells how slow the way is.
func TestStore_overASlowLink(t *testing.T) {
	for _, round := range []time.Duration{50 * time.Millisecond, 200 * time.Millisecond} {
		t.Run(round.String(), func(t *testing.T) {
			spec := serverSpec{Port: ports.Free(t, 1)[0], StoreDir: t.TempDir()}
			startProcess(t, spec)
			link := newSlowLink(t, spec.Port, round/2)
			cfg := externalConfig(t, link.port())
			cfg.AttemptTimeout = time.Second
			cfg.HeartbeatInterval = time.Second
			cfg.NodeTTL = 5 * time.Second
			began := time.Now()
			s := startStore(t, cfg)
			awaitJoined(t, s)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("joined after %v, want under 5s", took)
			} else {
				t.Logf("joined after %v", took)
			}
			if err := failing(s); err != nil {
				t.Error(err)
			}
			if e := s.Clock().Error(); e < round/4 || e > round {
				t.Errorf("clock error %v over a round trip of %v", e, round)
			}
			if got := spend(t, s, "f.v.account.a", 1, 4); got != 4 {
				t.Errorf("got %d of 4 units", got)
			}
		})
	}
}
