package invocation_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/invocation/nvcfpb"
	"github.com/headgate-io/headgate/ratelimit"
)

func newDoors(t *testing.T, cfg invocation.Config, g *invocation.Gate, opts ...invocation.Option) *invocation.Doors {
	t.Helper()
	rpc, err := invocation.NewGRPCServer(cfg, g, opts...)
	if err != nil {
		t.Fatal(err)
	}
	web, err := invocation.NewHTTPServer(cfg, invocation.NewHandler(g, nil), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return &invocation.Doors{Gate: g, GRPC: rpc, HTTP: web}
}

func loopback() invocation.Config {
	cfg := invocation.DefaultConfig()
	cfg.GRPCListen, cfg.HTTPListen = "127.0.0.1:0", "127.0.0.1:0"
	return cfg
}

// slowDecider decides when it is released; entered gets one value per decision.
func slowDecider(entered chan<- struct{}, release <-chan struct{}) *fakeDecider {
	return &fakeDecider{answer: func(ctx context.Context, _ ratelimit.Invocation) (ratelimit.Decision, error) {
		entered <- struct{}{}
		select {
		case <-release:
			return ratelimit.Decision{Outcome: ratelimit.Admitted}, nil
		case <-ctx.Done():
			return ratelimit.Decision{}, ctx.Err()
		}
	}}
}

// calls makes one call through each front door and sends what became of it.
func calls(t *testing.T, d *invocation.Doors) <-chan error {
	t.Helper()
	conn, err := grpc.NewClient(d.GRPC.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() { _ = conn.Close(); transport.CloseIdleConnections() })
	results := make(chan error, 2)
	go func() {
		_, err := nvcfpb.NewRateLimitServiceClient(conn).RateLimit(context.Background(), request())
		results <- err
	}()
	go func() {
		resp, err := (&http.Client{Transport: transport}).Post(
			"http://"+d.HTTP.Addr().String()+"/v1/check", "application/json", strings.NewReader(acmeBody))
		if err == nil {
			_, err = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		results <- err
	}()
	return results
}

func TestStopLetsRunningCallsFinish(t *testing.T) {
	entered, release := make(chan struct{}, 2), make(chan struct{})
	d := newDoors(t, loopback(), openGate(t, slowDecider(entered, release)))
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	results := calls(t, d)
	<-entered
	<-entered

	stopped := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		stopped <- d.Stop(ctx)
	}()
	close(release)
	for range 2 {
		if err := <-results; err != nil {
			t.Errorf("a call that was running: %v", err)
		}
	}
	if err := <-stopped; err != nil {
		t.Fatalf("stop: %v", err)
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Fatalf("stop again: %v", err)
	}
}

func TestStopCutsOffWhatOverstaysItsGrace(t *testing.T) {
	entered := make(chan struct{}, 2)
	d := newDoors(t, loopback(), openGate(t, slowDecider(entered, nil)))
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	results := calls(t, d)
	<-entered
	<-entered

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Stop(ctx); !errors.Is(err, invocation.ErrForced) || !errors.Is(err, context.Canceled) {
		t.Fatalf("stop: %v, want ErrForced", err)
	}
	for range 2 {
		if err := <-results; err == nil {
			t.Error("a call that was cut off got an answer")
		}
	}
	if err := d.Gate.Close(t.Context()); err != nil {
		t.Fatalf("the gate is not idle: %v", err)
	}
}

// A client that watches the health does not hold up a graceful stop.
func TestStopEndsHealthWatches(t *testing.T) {
	d := newDoors(t, loopback(), openGate(t, &fakeDecider{}))
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(d.GRPC.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := d.Stop(ctx); err != nil {
		t.Fatalf("stop with a watch open: %v", err)
	}
	for err == nil {
		_, err = watch.Recv()
	}
	if code := status.Code(err); code != codes.Canceled && code != codes.Unavailable {
		t.Fatalf("the watch ended with %v", err)
	}
}

func TestStartSaysWhichAddressIsTaken(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	address := taken.Addr().String()
	for name, cfg := range map[string]invocation.Config{
		"grpc": {GRPCListen: address, HTTPListen: "127.0.0.1:0"},
		"http": {GRPCListen: "127.0.0.1:0", HTTPListen: address},
	} {
		t.Run(name, func(t *testing.T) {
			all := loopback()
			all.GRPCListen, all.HTTPListen = cfg.GRPCListen, cfg.HTTPListen
			d := newDoors(t, all, openGate(t, &fakeDecider{}))
			err := d.Start(t.Context())
			if !errors.Is(err, invocation.ErrListen) || !strings.Contains(err.Error(), address) ||
				!strings.HasPrefix(err.Error(), name) {
				t.Fatalf("start: %v", err)
			}
			if err := d.Stop(t.Context()); err != nil {
				t.Fatalf("stop: %v", err)
			}
		})
	}
}

func TestADoorWithoutAddressStaysShut(t *testing.T) {
	cfg := loopback()
	cfg.HTTPListen = ""
	d := newDoors(t, cfg, openGate(t, &fakeDecider{}))
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d.HTTP.Addr() != nil || d.GRPC.Addr() == nil {
		t.Fatalf("http at %v, grpc at %v", d.HTTP.Addr(), d.GRPC.Addr())
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	if err := invocation.DefaultConfig().Validate(); err != nil {
		t.Fatalf("the default: %v", err)
	}
	err := invocation.Config{GRPCListen: "7777", HTTPListen: "nowhere"}.Validate()
	if !errors.Is(err, invocation.ErrConfig) {
		t.Fatalf("err %v", err)
	}
	for _, want := range []string{
		"grpc.listen: 7777", "http.listen: nowhere", "http.readTimeout: 0s", "http.writeTimeout: 0s",
		"http.idleTimeout: 0s", "grpc.keepalive: 0s", "grpc.maxStreams: 0",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %q", want, err)
		}
	}
}
