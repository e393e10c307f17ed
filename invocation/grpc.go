package invocation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/headgate-io/headgate/invocation/nvcfpb"
)

const (
	// minPingInterval is how often a client may ask whether the server is there.
	minPingInterval = 5 * time.Second
	// handshakeTimeout bounds the start of a connection.
	handshakeTimeout = 5 * time.Second
)

// GRPCServer is the gRPC front door: nvcfratelimiter.RateLimitService over a
// [Gate], grpc.health.v1.Health, and reflection (v1 and v1alpha). Use
// [NewGRPCServer]. All methods may be called concurrently.
type GRPCServer struct {
	listen string
	server *grpc.Server
	health *health.Server
	logger *slog.Logger
	// leaving ends streams that would otherwise last as long as their client:
	// a graceful stop waits for them.
	leaving context.Context
	leave   context.CancelFunc

	mu       sync.Mutex
	listener net.Listener
	served   chan struct{} // closed when the serving goroutine is done
}

// NewGRPCServer returns a server over gate; it listens on nothing yet and its
// health says NOT_SERVING. The error is from [Config.Validate].
func NewGRPCServer(cfg Config, gate *Gate, opts ...Option) (*GRPCServer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("invocation: config: %w", err)
	}
	o := collect(opts)
	s := &GRPCServer{listen: cfg.GRPCListen, health: health.NewServer(), logger: o.logger}
	s.leaving, s.leave = context.WithCancel(context.Background())
	s.server = grpc.NewServer(
		grpc.MaxRecvMsgSize(MaxBodyBytes),
		grpc.MaxHeaderListSize(MaxBodyBytes),
		grpc.MaxConcurrentStreams(cfg.MaxStreams),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: cfg.Keepalive, Timeout: cfg.Keepalive / 3}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{
			MinTime: minPingInterval, PermitWithoutStream: true,
		}),
		grpc.UnaryInterceptor(gate.recoverUnary),
		grpc.ChainStreamInterceptor(gate.recoverStream, s.endStreams),
	)
	nvcfpb.RegisterRateLimitServiceServer(s.server, &nvcfService{gate: gate})
	healthpb.RegisterHealthServer(s.server, s.health)
	reflection.Register(s.server)
	s.SetServing(false)
	return s, nil
}

// Start listens and serves behind the call; without an address it does nothing.
// The error is [ErrListen].
func (s *GRPCServer) Start(ctx context.Context) error {
	if s.listen == "" {
		return nil
	}
	l, err := listen(ctx, s.listen)
	if err != nil {
		return fmt.Errorf("grpc: %w", err)
	}
	s.mu.Lock()
	s.listener, s.served = l, make(chan struct{})
	s.mu.Unlock()
	go func() {
		defer close(s.served)
		if err := s.server.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			s.logger.Error("grpc front door failed", "error", err)
		}
	}()
	s.logger.Info("grpc front door open", "address", l.Addr().String())
	return nil
}

// Addr is where the server listens; nil before [GRPCServer.Start].
func (s *GRPCServer) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// SetServing makes the health service say SERVING or NOT_SERVING, for the
// server as a whole and for each of its services.
func (s *GRPCServer) SetServing(serving bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if serving {
		status = healthpb.HealthCheckResponse_SERVING
	}
	for _, service := range []string{"", nvcfpb.RateLimitService_ServiceDesc.ServiceName} {
		s.health.SetServingStatus(service, status)
	}
}

// Stop says NOT_SERVING for good, takes no further calls and waits for those
// running; when ctx ends first it cuts them off and returns [ErrForced]. It
// does nothing to a server that was not started or is stopped.
func (s *GRPCServer) Stop(ctx context.Context) error {
	s.health.Shutdown()
	s.leave()
	s.mu.Lock()
	served := s.served
	s.mu.Unlock()
	if served == nil {
		return nil
	}
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		s.server.GracefulStop()
	}()
	var err error
	select {
	case <-graceful:
	case <-ctx.Done():
		s.server.Stop() // ends the graceful stop too
		<-graceful
		err = fmt.Errorf("grpc: %w: %w", ErrForced, ctx.Err())
	}
	<-served
	return err
}

// endStreams ends a stream's context when the server leaves.
func (s *GRPCServer) endStreams(
	srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler,
) error {
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	defer context.AfterFunc(s.leaving, cancel)()
	return next(srv, &endingStream{ServerStream: stream, ctx: ctx})
}

type endingStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *endingStream) Context() context.Context { return s.ctx }
