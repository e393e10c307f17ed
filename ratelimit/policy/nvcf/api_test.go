package nvcf

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf/nvcfapipb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests.
const patience = 10 * time.Second

// behaviour is how the API answers one question.
type behaviour func(ctx context.Context, key function) (*nvcfapipb.RateLimitConfig, error)

// api is a real policy API on loopback, whose behaviour a test changes.
type api struct {
	nvcfapipb.UnimplementedRateLimitServer
	address string
	server  *grpc.Server
	asked   atomic.Int64
	do      atomic.Pointer[behaviour]

	mu    sync.Mutex
	token string // of the last question
}

func (a *api) RateLimitPolicy(ctx context.Context, r *nvcfapipb.RateLimitPolicyRequest) (*nvcfapipb.RateLimitPolicyResponse, error) {
	a.asked.Add(1)
	md, _ := metadata.FromIncomingContext(ctx)
	a.mu.Lock()
	a.token = strings.Join(md.Get("authorization"), "|")
	a.mu.Unlock()
	config, err := (*a.do.Load())(ctx, function{r.GetFunctionId(), r.GetFunctionVersionId()})
	return &nvcfapipb.RateLimitPolicyResponse{Config: config}, err
}

func (a *api) is(b behaviour) { a.do.Store(&b) }

// startAPI listens on the address, or on a free one.
func startAPI(t *testing.T, address string, b behaviour, opts ...grpc.ServerOption) *api {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	a := &api{address: l.Addr().String(), server: grpc.NewServer(opts...)}
	a.is(b)
	nvcfapipb.RegisterRateLimitServer(a.server, a)
	served := make(chan error, 1)
	go func() { served <- a.server.Serve(l) }()
	t.Cleanup(func() {
		a.server.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Error(err)
		}
	})
	return a
}

// rate answers with one rate for every account.
func rate(text string) behaviour {
	return func(context.Context, function) (*nvcfapipb.RateLimitConfig, error) {
		return &nvcfapipb.RateLimitConfig{Rate: &text}, nil
	}
}

func fails(code codes.Code) behaviour {
	return func(context.Context, function) (*nvcfapipb.RateLimitConfig, error) {
		return nil, status.Error(code, "tenant acme is not welcome")
	}
}

func hangs(ctx context.Context, _ function) (*nvcfapipb.RateLimitConfig, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// feed keeps what a source told.
type feed struct {
	changes   chan struct{}
	faults    chan error
	recovered chan struct{}
}

func (f *feed) Replace([]*ratelimit.Policy) {}
func (f *feed) Changed()                    { f.changes <- struct{}{} }
func (f *feed) Fault(err error)             { f.faults <- err }
func (f *feed) Recovered()                  { f.recovered <- struct{}{} }

// start makes a source that asks at the address and forgets after 200 ms.
func start(t *testing.T, address string, change ...func(*Config)) (*Source, *feed) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Address, cfg.CacheTTL = address, 200*time.Millisecond
	for _, f := range change {
		f(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f := &feed{make(chan struct{}, 1024), make(chan error, 1024), make(chan struct{}, 1024)}
	s.Attach(f)
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := s.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	return s, f
}

func longTTL(c *Config) { c.CacheTTL = time.Hour }

func wait[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(patience):
		t.Fatalf("never: %s", what)
		panic("unreachable")
	}
}

// until polls as a limiter would, which keeps the function in use.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never: %s", what)
		}
	}
}

// units is the limit per account now, -1 for none; and how it is known.
func units(s *Source) (n int64, stale, degraded bool) {
	p, degraded := s.Ask(context.Background(), "f", "v")
	if p == nil {
		return -1, false, degraded
	}
	return p.Account[0].Units, p.Stale, degraded
}

var _ policy.Feed = (*feed)(nil)
