package kvstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
	"github.com/headgate-io/headgate/test/ports"
)

// bedWait bounds every wait for a server of a test.
const bedWait = 30 * time.Second

// patientAttempt is for tests in which no attempt gets lost but on purpose: on a
// loaded machine 100 ms pass without anybody's fault.
const patientAttempt = 2 * time.Second

// bed is a counters bucket on real servers in this process, without the rest
// of a [Store] around it.
type bed struct {
	servers []*server.Server
	stream  string
}

// newBed starts one server, or a cluster of several, and makes the bucket with
// as many replicas.
func newBed(tb testing.TB, size int) *bed {
	tb.Helper()
	b := &bed{stream: streamPrefix + CountersBucket}
	routes := ports.Free(tb, size)
	for i := range size {
		b.servers = append(b.servers, startServer(tb, i, routes))
	}
	for _, s := range b.servers {
		if !within(bedWait, func() bool { return s.Healthz(nil).StatusCode == 200 }) {
			tb.Fatalf("server %s is not healthy: %+v", s.Name(), s.Healthz(nil))
		}
	}
	js := b.jetStream(tb, 0)
	var err error
	if !within(bedWait, func() bool { // the leader may not know of all servers yet
		ctx, cancel := context.WithTimeout(context.Background(), bedWait)
		defer cancel()
		_, err = js.CreateStream(ctx, bucketConfig(CountersBucket, size))
		return err == nil
	}) {
		tb.Fatalf("create bucket: %v", err)
	}
	return b
}

func startServer(tb testing.TB, i int, routePorts []int) *server.Server {
	tb.Helper()
	opts := &server.Options{
		ServerName: fmt.Sprintf("bed-%d", i),
		Host:       "127.0.0.1",
		Port:       server.RANDOM_PORT,
		JetStream:  true,
		StoreDir:   tb.TempDir(),
		NoSigs:     true,
		NoLog:      true,
	}
	if len(routePorts) > 1 {
		opts.Cluster = server.ClusterOpts{Name: "bed", Host: "127.0.0.1", Port: routePorts[i]}
		routes := ""
		for _, p := range routePorts {
			routes += fmt.Sprintf(",nats-route://127.0.0.1:%d", p)
		}
		opts.Routes = server.RoutesFromStr(routes[1:])
	}
	s, err := server.NewServer(opts)
	if err != nil {
		tb.Fatalf("server %d: %v", i, err)
	}
	s.Start()
	tb.Cleanup(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})
	if !s.ReadyForConnections(bedWait) {
		tb.Fatalf("server %d takes no connections", i)
	}
	return s
}

// within polls until it holds; false after the bound.
func within(bound time.Duration, holds func() bool) bool {
	deadline := time.NewTimer(bound)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline.C:
			return holds()
		case <-tick.C:
		}
	}
	return true
}

// connect is a connection to all servers, the i-th first.
func (b *bed) connect(tb testing.TB, i int) *nats.Conn {
	tb.Helper()
	urls := ""
	for k := range b.servers {
		urls += "," + b.servers[(i+k)%len(b.servers)].ClientURL()
	}
	nc, err := nats.Connect(urls[1:], nats.DontRandomize(), nats.MaxReconnects(-1),
		nats.ReconnectWait(10*time.Millisecond), nats.ReconnectJitter(0, 0), nats.ReconnectBufSize(-1))
	if err != nil {
		tb.Fatalf("connect: %v", err)
	}
	tb.Cleanup(nc.Close)
	return nc
}

func (b *bed) jetStream(tb testing.TB, i int) jetstream.JetStream {
	tb.Helper()
	js, err := jetstream.New(b.connect(tb, i))
	if err != nil {
		tb.Fatal(err)
	}
	return js
}

// settler is a settler of a node of its own, stopped with the test.
func (b *bed) settler(tb testing.TB, node string) *settler {
	tb.Helper()
	s := newSettler(b.jetStream(tb, int(xxhash.Sum64String(node)%uint64(len(b.servers)))), b.stream,
		storetest.NewClock(), settlerConfig{Node: node, Attempt: patientAttempt}, newMetrics(nil))
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), bedWait)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			tb.Errorf("stop settler: %v", err)
		}
	})
	return s
}

// stored is the record of a key as it stands in the bucket.
func (b *bed) stored(tb testing.TB, js jetstream.JetStream, key ratelimit.Key) (stored, *record) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), bedWait)
	defer cancel()
	v, err := newCountersBucket(js, b.stream).read(ctx, key)
	if err != nil {
		tb.Fatalf("read: %v", err)
	}
	if v.sequence == 0 {
		return v, nil
	}
	rec, err := decodeRecord(v.data)
	if err != nil {
		tb.Fatalf("record: %v", err)
	}
	return v, rec
}

// perDay is a limit that nothing expires from while a test runs.
func perDay(units int64) []counter.Rate {
	return []counter.Rate{{Units: units, Period: 24 * time.Hour}}
}

// needs is count invocations of one unit.
func needs(key ratelimit.Key, rates []counter.Rate, count int64) ratelimit.Exchange {
	return ratelimit.Exchange{Key: key, Rates: rates, Needs: []ratelimit.Need{{Cost: 1, Count: count}}}
}
