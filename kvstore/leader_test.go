package kvstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/storetest"
	"github.com/headgate-io/headgate/test/ports"
)

// serverEnv makes a process of this test binary a NATS server: its name, folder
// and client port, and the routes of its cluster, its own first.
const serverEnv = "HEADGATE_TEST_SERVER"

// TestServerProcess is no test: it is the NATS server that other tests start as
// a process of its own, to kill it.
func TestServerProcess(t *testing.T) {
	config, ok := os.LookupEnv(serverEnv)
	if !ok {
		return
	}
	part := strings.Split(config, "\n")
	var client, route int
	if _, err := fmt.Sscan(part[2], &client, &route); err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		ServerName: part[0], StoreDir: part[1], Host: "127.0.0.1", Port: client,
		JetStream: true, NoSigs: true, NoLog: true,
		Cluster: server.ClusterOpts{Name: "bed", Host: "127.0.0.1", Port: route},
		Routes:  server.RoutesFromStr(part[3]),
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test that started it is gone
	s.Shutdown()
	s.WaitForShutdown()
}

// processBed is a cluster of server processes.
type processBed struct {
	urls  string
	procs map[string]*exec.Cmd // by server name
}

func newProcessBed(t *testing.T, size int) *processBed {
	t.Helper()
	free := ports.Free(t, 2*size)
	var urls, routes []string
	for i := range size {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", free[i]))
		routes = append(routes, fmt.Sprintf("nats-route://127.0.0.1:%d", free[size+i]))
	}
	b := &processBed{urls: strings.Join(urls, ","), procs: make(map[string]*exec.Cmd)}
	for i := range size {
		name := fmt.Sprintf("proc-%d", i)
		cmd := exec.Command(os.Args[0], "-test.run=^TestServerProcess$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s\n%s\n%d %d\n%s",
			serverEnv, name, t.TempDir(), free[i], free[size+i], strings.Join(routes, ",")))
		stdin, err := cmd.StdinPipe() // open as long as the test runs
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = stdin.Close()
			_ = cmd.Process.Kill() // unless the test did
			_ = cmd.Wait()
		})
		b.procs[name] = cmd
	}
	return b
}

// connect waits for the servers to take connections.
func (b *processBed) connect(t *testing.T) jetstream.JetStream {
	t.Helper()
	var nc *nats.Conn
	var err error
	if !within(bedWait, func() bool {
		nc, err = nats.Connect(b.urls, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectBufSize(-1))
		return err == nil
	}) {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// createBucket makes the counters bucket and returns when it has all replicas.
func (b *processBed) createBucket(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	var err error
	if !within(bedWait, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = js.CreateOrUpdateStream(ctx, bucketConfig(CountersBucket, len(b.procs)))
		return err == nil
	}) {
		t.Fatalf("create bucket: %v", err)
	}
}

// leader is the name of the server that leads the counters bucket.
func (b *processBed) leader(t *testing.T, js jetstream.JetStream) string {
	t.Helper()
	s, err := js.Stream(t.Context(), streamPrefix+CountersBucket)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().Cluster.Leader
}

// tally is what the callers of one counter were told.
type tally struct {
	key     ratelimit.Key
	granted atomic.Int64
	unknown atomic.Int64
	wrong   atomic.Int64 // errors that no store may return
}

func (c *tally) note(units int64, err error) {
	switch {
	case err == nil:
		c.granted.Add(units)
	case errors.Is(err, ratelimit.ErrUnknown):
		c.unknown.Add(1)
	case !errors.Is(err, ratelimit.ErrUnavailable):
		c.wrong.Add(1)
	}
}

// TestLeaderKilledInMidExchange kills the process that leads the bucket under
// load from three nodes on one hot and some other counters. Every unit that was
// granted is charged when the cluster is back, and no unit is charged twice:
// what is charged beyond the granted ones, its callers were told is unknown.
func TestLeaderKilledInMidExchange(t *testing.T) {
	b := newProcessBed(t, 3)
	js := b.connect(t)
	b.createBucket(t, js)
	stream := streamPrefix + CountersBucket
	list := newRoster("node-0", "node-1", "node-2")
	counters := []*tally{{key: "f.v.account.hot"}, {key: "f.v.account.a"}, {key: "f.v.account.b"}, {key: "f.v.account.c"}}

	stop := make(chan struct{})
	var total atomic.Int64
	var wg sync.WaitGroup
	for _, node := range list.Live() {
		s := newSettler(b.connect(t), stream, storetest.NewClock(), settlerConfig{Node: node}, newMetrics(nil))
		o := newOwners(s.bucket.js.Conn(), s, list, node, ownerConfig{}, s.metrics)
		if err := o.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer stopAll(t, o)
		for w := range 6 {
			c := counters[max(0, w-2)]
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
					g, err := o.Exchange(ctx, named(node, needs(c.key, perDay(1<<40), 1)))
					cancel()
					c.note(g.Units, err)
					total.Add(g.Units)
				}
			})
		}
	}
	grow := func(by int64, when string) {
		goal := total.Load() + by
		if !within(bedWait, func() bool { return total.Load() >= goal }) {
			t.Errorf("%s: the store did not take %d units", when, by)
		}
	}
	grow(500, "before")
	if err := b.procs[b.leader(t, js)].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	grow(500, "after the leader was killed")
	t.Logf("500 units granted within %v of the kill", time.Since(killed))
	close(stop)
	wg.Wait()
	for _, c := range counters {
		b.judge(t, js, c)
	}
}

// stopAll stops a node of a test.
func stopAll(t *testing.T, o *owners) {
	ctx, cancel := context.WithTimeout(context.Background(), bedWait)
	defer cancel()
	if err := errors.Join(o.Stop(ctx), o.settler.Stop(ctx)); err != nil {
		t.Error(err)
	}
}

// judge compares what callers were told with what the store holds.
func (b *processBed) judge(t *testing.T, js jetstream.JetStream, c *tally) {
	t.Helper()
	var v stored
	var err error
	if !within(bedWait, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		v, err = newCountersBucket(js, streamPrefix+CountersBucket).read(ctx, c.key)
		return err == nil
	}) {
		t.Fatal(err)
	}
	rec, err := decodeRecord(v.data)
	if err != nil {
		t.Fatal(err)
	}
	charged := 1<<40 - rec.counter.Available(perDay(1<<40), rec.counter.Seen)
	granted, unknown := c.granted.Load(), c.unknown.Load()
	t.Logf("granted %d, unknown %d, charged %d", granted, unknown, charged)
	if charged < granted || charged > granted+unknown || c.wrong.Load() != 0 {
		t.Errorf("granted %d, unknown %d, charged %d, %d errors of no name", granted, unknown, charged, c.wrong.Load())
	}
}
