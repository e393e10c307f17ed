package cluster

import (
	"bufio"
	"fmt"
	"net"
	"testing"
	"time"
)

// echo answers every line with itself; it ends with the test.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				lines := bufio.NewScanner(conn)
				for lines.Scan() {
					fmt.Fprintln(conn, lines.Text())
				}
			}()
		}
	}()
	return l.Addr().String()
}

// speaker is a client that says a line and waits for its echo.
type speaker struct {
	conn  net.Conn
	lines *bufio.Reader
}

func dialProxy(t *testing.T, p *proxy) *speaker {
	t.Helper()
	conn, err := net.Dial("tcp", p.address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &speaker{conn, bufio.NewReader(conn)}
}

// hears waits for a line, for no longer than the bound.
func (s *speaker) hears(bound time.Duration) (string, error) {
	if err := s.conn.SetReadDeadline(time.Now().Add(bound)); err != nil {
		return "", err
	}
	return s.lines.ReadString('\n')
}

func TestProxyHoldsUpWhatIsCutAndDeliversItWhenHealed(t *testing.T) {
	t.Parallel()
	p := newProxy(t, echo(t))
	s := dialProxy(t, p)
	fmt.Fprintln(s.conn, "whole")
	if line, err := s.hears(readyBound); line != "whole\n" {
		t.Fatalf("heard %q, %v", line, err)
	}
	p.cut()
	fmt.Fprintln(s.conn, "cut")
	if line, err := s.hears(100 * time.Millisecond); err == nil {
		t.Fatalf("heard %q through a cut network", line)
	}
	p.heal()
	if line, err := s.hears(readyBound); line != "cut\n" {
		t.Fatalf("heard %q, %v after it was healed", line, err)
	}
}

func TestProxyDelays(t *testing.T) {
	t.Parallel()
	p := newProxy(t, echo(t))
	s := dialProxy(t, p)
	const roundTrip = 60 * time.Millisecond
	p.slow(roundTrip)
	start := time.Now()
	fmt.Fprintln(s.conn, "slow")
	if line, err := s.hears(readyBound); line != "slow\n" {
		t.Fatalf("heard %q, %v", line, err)
	}
	if took := time.Since(start); took < roundTrip {
		t.Errorf("took %v, want at least %v", took, roundTrip)
	}
}

func TestProxyPassesTheEndOn(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, l.Addr().String())
	s := dialProxy(t, p)
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	served.Close()
	l.Close()
	if line, err := s.hears(readyBound); err == nil {
		t.Errorf("heard %q from a closed connection", line)
	}
}
