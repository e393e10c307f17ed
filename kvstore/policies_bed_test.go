package kvstore

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/test/ports"
)

// policyBed is a real server with the policies bucket, which can be stopped
// and started again on the same port and folder, and a connection to it.
type policyBed struct {
	opts   *server.Options
	server *server.Server
	nc     *nats.Conn
	js     jetstream.JetStream
}

// Joined and JetStream make the bed what [Policies] asks of a [Store].
func (b *policyBed) Joined() <-chan struct{} {
	joined := make(chan struct{})
	close(joined)
	return joined
}

func (b *policyBed) JetStream() jetstream.JetStream { return b.js }

func newPolicyBed(t *testing.T) *policyBed {
	t.Helper()
	b := &policyBed{opts: &server.Options{
		Host: "127.0.0.1", Port: ports.Free(t, 1)[0], JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
	}}
	b.start(t)
	t.Cleanup(func() { b.stop() })
	nc, err := nats.Connect(b.server.ClientURL(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	b.nc = nc
	if b.js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	if _, err := b.js.CreateStream(t.Context(), bucketConfig(PoliciesBucket, 1)); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *policyBed) start(t *testing.T) {
	t.Helper()
	s, err := server.NewServer(b.opts.Clone())
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(bedWait) {
		t.Fatal("the server takes no connections")
	}
	b.server = s
}

func (b *policyBed) stop() {
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

// kv is the bucket as a client of NATS sees it.
func (b *policyBed) kv(t *testing.T) jetstream.KeyValue {
	t.Helper()
	kv, err := b.js.KeyValue(t.Context(), PoliciesBucket)
	if err != nil {
		t.Fatal(err)
	}
	return kv
}

// policyFeed keeps what a source told.
type policyFeed struct {
	lists     chan []*ratelimit.Policy
	faults    chan error
	recovered chan struct{}
}

func (f *policyFeed) Replace(policies []*ratelimit.Policy) { f.lists <- policies }
func (f *policyFeed) Changed()                             {}
func (f *policyFeed) Fault(err error)                      { f.faults <- err }
func (f *policyFeed) Recovered()                           { f.recovered <- struct{}{} }

// watchPolicies starts a source; its first list is still to be read.
func watchPolicies(t *testing.T, store joinable) (*Policies, *policyFeed) {
	t.Helper()
	p := newPolicies(store)
	p.check = 50 * time.Millisecond
	f := &policyFeed{make(chan []*ratelimit.Policy, 1024), make(chan error, 1024), make(chan struct{}, 1024)}
	p.Attach(f)
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := p.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return p, f
}

// next waits for a value, with the patience of this package's tests.
func next[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(testPatience):
		t.Fatalf("never: %s", what)
		panic("unreachable")
	}
}

// untilList waits for the list that is wanted, past those in between.
func untilList(t *testing.T, f *policyFeed, want ...string) {
	t.Helper()
	for {
		var got []string
		for _, p := range next(t, f.lists, fmt.Sprint("list ", want)) {
			got = append(got, p.Function+"/"+p.Version+"@"+p.Revision)
		}
		if slices.Equal(got, want) {
			return
		}
	}
}

// of reads one policy; the text is YAML.
func of(t *testing.T, text string) *ratelimit.Policy {
	t.Helper()
	policies, _, err := policy.Parse([]byte(text))
	if err != nil || len(policies) != 1 {
		t.Fatalf("%d policies, %v", len(policies), err)
	}
	return policies[0]
}
