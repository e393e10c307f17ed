package kvstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Bounds of gathering.
const (
	// gatherAll is how long a member without a past waits for all the others
	// before it is content with a majority.
	gatherAll  = 3 * time.Second
	gatherDial = 500 * time.Millisecond
	gatherPoll = 20 * time.Millisecond
	// firstElection is when the election is over that members without a past
	// hold as they start: they stand 100 to 800 ms after that.
	firstElection = 1200 * time.Millisecond
	// firstElections is how often it is held anew.
	firstElections = 4
)

// errNotElected: members without a past elected no leader as they started. That
// takes all their votes, so it fails when two of them stand at once, about once
// in ten times. The next election would be four to nine seconds away; to start
// once more is faster.
var errNotElected = errors.New("no leader was elected yet")

// errFewMembers: too few members are there to elect a leader.
var errFewMembers = errors.New("waiting for the other members")

// hasMetaGroup reports whether a member left its part of the cluster's state in
// storeDir.
func hasMetaGroup(storeDir string) bool {
	_, err := os.Stat(filepath.Join(storeDir, "jetstream", server.DEFAULT_SYSTEM_ACCOUNT, "_js_", "_meta_"))
	return err == nil
}

// gather waits until the other members are there, before the server of a member
// without a past is started. Such a server stands for election once, within a
// second. If the others cannot hear it, its voice is wasted, and the next
// election is four to nine seconds away; with less than a majority there is
// nothing to wait for anyway. Meanwhile the address of the routes is listened
// on, so that the others find this member too.
func gather(ctx context.Context, listen string, routes []*url.URL, note func(error)) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("Cluster.Listen: %w", err)
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		answer(l)
	}()
	defer func() {
		_ = l.Close()
		<-answered
	}()
	began := time.Now()
	tick := time.NewTicker(gatherPoll)
	defer tick.Stop()
	for {
		there := reachable(ctx, routes)
		majority := len(routes)/2 + 1
		if there >= len(routes) || (time.Since(began) > gatherAll && there >= majority) {
			return nil
		}
		note(fmt.Errorf("%w: %d of %d can be reached", errFewMembers, there, len(routes)))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// answer accepts and closes connections until l is closed.
func answer(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_ = c.Close()
	}
}

// reachable counts the routes that accept a connection.
func reachable(ctx context.Context, routes []*url.URL) int {
	var (
		dials sync.WaitGroup
		mu    sync.Mutex
		n     int
	)
	d := net.Dialer{Timeout: gatherDial}
	for _, r := range routes {
		dials.Go(func() {
			c, err := d.DialContext(ctx, "tcp", r.Host)
			if err != nil {
				return
			}
			_ = c.Close()
			mu.Lock()
			n++
			mu.Unlock()
		})
	}
	dials.Wait()
	return n
}
