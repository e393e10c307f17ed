package invocation_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/invocation/nvcfpb"
)

// What a front door adds to a decision that costs nothing: over a loopback
// connection for gRPC, without one for HTTP.
func BenchmarkDoors(b *testing.B) {
	g, err := invocation.NewGate(allocFree{})
	if err != nil {
		b.Fatal(err)
	}
	g.Open()
	b.Run("grpc", func(b *testing.B) { benchGRPC(b, g) })
	b.Run("http", func(b *testing.B) {
		h := invocation.NewHandler(g, nil)
		b.ReportAllocs()
		for b.Loop() {
			r := httptest.NewRequest(http.MethodPost, "/v1/check", strings.NewReader(acmeBody))
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
	})
}

func benchGRPC(b *testing.B, g *invocation.Gate) {
	s, err := invocation.NewGRPCServer(loopback(), g)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	conn, err := grpc.NewClient(s.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	client := nvcfpb.NewRateLimitServiceClient(conn)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := client.RateLimit(context.Background(), request()); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	_ = conn.Close()
	if err := s.Stop(context.Background()); err != nil {
		b.Error(err)
	}
}
