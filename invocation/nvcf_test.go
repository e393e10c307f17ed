package invocation_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/invocation/nvcfpb"
	"github.com/headgate-io/headgate/ratelimit"
)

// serveGRPC opens a front door on loopback and connects to it.
func serveGRPC(t *testing.T, g *invocation.Gate, opts ...invocation.Option) (*invocation.GRPCServer, *grpc.ClientConn) {
	t.Helper()
	cfg := invocation.DefaultConfig()
	cfg.GRPCListen = "127.0.0.1:0"
	s, err := invocation.NewGRPCServer(cfg, g, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(s.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return s, conn
}

func request() *nvcfpb.RateLimitRequest {
	return &nvcfpb.RateLimitRequest{
		NcaId: "acme", FunctionId: "f", FunctionVersionId: "v", ClientAuthSubject: "kim",
	}
}

// The bytes that NVCF's own clients send and expect.
func TestNVCFWireBytes(t *testing.T) {
	var want []byte
	for i, text := range []string{"acme", "f", "v", "kim"} {
		want = protowire.AppendTag(want, protowire.Number(i+1), protowire.BytesType)
		want = protowire.AppendString(want, text)
	}
	got, err := proto.MarshalOptions{Deterministic: true}.Marshal(request())
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("request %x, want %x (%v)", got, want, err)
	}
	allow, err := proto.Marshal(&nvcfpb.RateLimitResponse{Result: nvcfpb.Result_ALLOW})
	if err != nil || len(allow) != 0 {
		t.Fatalf("ALLOW is %x, want nothing (%v)", allow, err)
	}
	disallow, err := proto.Marshal(&nvcfpb.RateLimitResponse{Result: nvcfpb.Result_DISALLOW})
	if err != nil || !bytes.Equal(disallow, []byte{0x08, 0x01}) {
		t.Fatalf("DISALLOW is %x, want 0801 (%v)", disallow, err)
	}
	if m := nvcfpb.RateLimitService_RateLimit_FullMethodName; m != "/nvcfratelimiter.RateLimitService/RateLimit" {
		t.Fatalf("method %s", m)
	}
}

func TestNVCFAnswers(t *testing.T) {
	hourly := rate(t, "10-H")
	for _, c := range []struct {
		name     string
		decision ratelimit.Decision
		want     nvcfpb.Result
		trailer  map[string]string
	}{
		{"admitted", ratelimit.Decision{Outcome: ratelimit.Admitted}, nvcfpb.Result_ALLOW, nil},
		{
			"denied",
			ratelimit.Decision{Tier: ratelimit.Account, Rate: hourly, RetryAfter: 1500 * time.Millisecond},
			nvcfpb.Result_DISALLOW,
			map[string]string{"retry-after": "2", "headgate-tier": "account", "headgate-rate": "10-H"},
		},
		{
			"denied for a moment",
			ratelimit.Decision{Tier: ratelimit.Subject, Rate: hourly, RetryAfter: 1},
			nvcfpb.Result_DISALLOW,
			map[string]string{"retry-after": "1", "headgate-tier": "subject", "headgate-rate": "10-H"},
		},
		{
			"impossible",
			ratelimit.Decision{Outcome: ratelimit.Impossible, Tier: ratelimit.Total, Rate: hourly},
			nvcfpb.Result_DISALLOW,
			map[string]string{"retry-after": "", "headgate-tier": "total", "headgate-rate": "10-H"},
		},
		{
			"denied but not enforced",
			ratelimit.Decision{Tier: ratelimit.Account, Rate: hourly, Policy: &ratelimit.Policy{Shadow: true}},
			nvcfpb.Result_ALLOW, map[string]string{"retry-after": ""},
		},
		{"degraded", ratelimit.Decision{Outcome: ratelimit.Admitted, Degraded: true}, nvcfpb.Result_ALLOW, nil},
		{
			"degraded and denied", ratelimit.Decision{Tier: ratelimit.Account, Rate: hourly, Degraded: true},
			nvcfpb.Result_DISALLOW, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			fake := decides(c.decision)
			_, conn := serveGRPC(t, openGate(t, fake))
			var trailer metadata.MD
			resp, err := nvcfpb.NewRateLimitServiceClient(conn).RateLimit(t.Context(), request(), grpc.Trailer(&trailer))
			if err != nil || resp.GetResult() != c.want {
				t.Fatalf("%v, %v; want %v", resp.GetResult(), err, c.want)
			}
			want := ratelimit.Invocation{Account: "acme", Function: "f", Version: "v", Subject: "kim", Cost: 1}
			if got, _ := fake.last(); got != want {
				t.Fatalf("decided %+v, want %+v", got, want)
			}
			for name, value := range c.trailer {
				if got := strings.Join(trailer.Get(name), ","); got != value {
					t.Errorf("trailer %s is %q, want %q", name, got, value)
				}
			}
		})
	}
}

func TestNVCFErrors(t *testing.T) {
	with := func(change func(*nvcfpb.RateLimitRequest)) *nvcfpb.RateLimitRequest {
		r := request()
		change(r)
		return r
	}
	long := strings.Repeat("x", 257)
	for _, c := range []struct {
		name    string
		decider *fakeDecider
		req     *nvcfpb.RateLimitRequest
		code    codes.Code
		field   string
	}{
		{"nothing at all", nil, &nvcfpb.RateLimitRequest{}, codes.InvalidArgument, "ncaId"},
		{"no ncaId", nil, with(func(r *nvcfpb.RateLimitRequest) { r.NcaId = "" }), codes.InvalidArgument, "ncaId"},
		{"no functionId", nil, with(func(r *nvcfpb.RateLimitRequest) { r.FunctionId = "" }),
			codes.InvalidArgument, "functionId"},
		{"no functionVersionId", nil, with(func(r *nvcfpb.RateLimitRequest) { r.FunctionVersionId = "" }),
			codes.InvalidArgument, "functionVersionId"},
		{"long subject", nil, with(func(r *nvcfpb.RateLimitRequest) { r.ClientAuthSubject = long }),
			codes.InvalidArgument, "clientAuthSubject"},
		{"control character", nil, with(func(r *nvcfpb.RateLimitRequest) { r.FunctionId = "f\t" }),
			codes.InvalidArgument, "functionId"},
		{"ncaId not UTF-8", nil, with(func(r *nvcfpb.RateLimitRequest) { r.NcaId = "\xff" }),
			codes.InvalidArgument, "ncaId"},
		{"subject not UTF-8", nil, with(func(r *nvcfpb.RateLimitRequest) { r.ClientAuthSubject = "kim\xc3" }),
			codes.InvalidArgument, "clientAuthSubject"},
		{"the policy's own refusal", fails(&ratelimit.FieldError{Field: "version", Reason: "is required"}), request(),
			codes.InvalidArgument, "functionVersionId"},
		{"too large", nil, with(func(r *nvcfpb.RateLimitRequest) { r.NcaId = strings.Repeat("x", 65<<10) }),
			codes.ResourceExhausted, ""},
		{"stopped", fails(ratelimit.ErrStopped), request(), codes.Unavailable, ""},
		{"late", fails(context.DeadlineExceeded), request(), codes.DeadlineExceeded, ""},
		{"given up", fails(context.Canceled), request(), codes.Canceled, ""},
		{"a fault of ours", fails(errors.New("acme")), request(), codes.Internal, ""},
		{"a panic of ours", &fakeDecider{answer: func(context.Context, ratelimit.Invocation) (ratelimit.Decision, error) {
			panic("acme")
		}}, request(), codes.Internal, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.decider == nil {
				c.decider = &fakeDecider{}
			}
			_, conn := serveGRPC(t, openGate(t, c.decider))
			_, err := nvcfpb.NewRateLimitServiceClient(conn).RateLimit(t.Context(), c.req)
			st := status.Convert(err)
			if st.Code() != c.code {
				t.Fatalf("%v, want %v", err, c.code)
			}
			if strings.Contains(st.Message(), "acme") {
				t.Fatalf("the message gives the account away: %s", st.Message())
			}
			if c.field == "" {
				return
			}
			if !strings.HasPrefix(st.Message(), c.field+": ") || violation(st) != c.field {
				t.Fatalf("message %q, violation %q; want field %s", st.Message(), violation(st), c.field)
			}
		})
	}
}

// violation is the field that a status names for programs.
func violation(st *status.Status) string {
	for _, detail := range st.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok && len(bad.GetFieldViolations()) == 1 {
			return bad.GetFieldViolations()[0].GetField()
		}
	}
	return ""
}

func TestGRPCUntilReady(t *testing.T) {
	g, err := invocation.NewGate(&fakeDecider{})
	if err != nil {
		t.Fatal(err)
	}
	s, conn := serveGRPC(t, g)
	client, checks := nvcfpb.NewRateLimitServiceClient(conn), healthpb.NewHealthClient(conn)
	health := func() string {
		t.Helper()
		var all []string
		for _, service := range []string{"", "nvcfratelimiter.RateLimitService"} {
			r, err := checks.Check(t.Context(), &healthpb.HealthCheckRequest{Service: service})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r.GetStatus().String())
		}
		return strings.Join(all, " ")
	}

	for _, req := range []*nvcfpb.RateLimitRequest{request(), {}} {
		if _, err := client.RateLimit(t.Context(), req); status.Code(err) != codes.Unavailable {
			t.Fatalf("before ready: %v, want UNAVAILABLE", err)
		}
	}
	if got := health(); got != "NOT_SERVING NOT_SERVING" {
		t.Fatalf("health before ready: %s", got)
	}
	g.Open()
	s.SetServing(true)
	if _, err := client.RateLimit(t.Context(), request()); err != nil {
		t.Fatalf("ready: %v", err)
	}
	if got := health(); got != "SERVING SERVING" {
		t.Fatalf("health when ready: %s", got)
	}
	// Draining: out of service, and still serving those who come.
	s.SetServing(false)
	if _, err := client.RateLimit(t.Context(), request()); err != nil {
		t.Fatalf("draining: %v", err)
	}
	if got := health(); got != "NOT_SERVING NOT_SERVING" {
		t.Fatalf("health when draining: %s", got)
	}
}

func TestGRPCReflection(t *testing.T) {
	_, conn := serveGRPC(t, openGate(t, &fakeDecider{}))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ask := &reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: "nvcfratelimiter.RateLimitService",
		},
	}
	// The messages of the two versions are the same bytes.
	for _, version := range []string{"v1", "v1alpha"} {
		stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
			"/grpc.reflection."+version+".ServerReflection/ServerReflectionInfo")
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.SendMsg(ask); err != nil {
			t.Fatal(err)
		}
		var got reflectionpb.ServerReflectionResponse
		if err := stream.RecvMsg(&got); err != nil || len(got.GetFileDescriptorResponse().GetFileDescriptorProto()) == 0 {
			t.Fatalf("%s: %v, %v", version, &got, err)
		}
	}
}
