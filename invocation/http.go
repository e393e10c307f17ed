package invocation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
)

// HTTPServer serves a handler on [Config.HTTPListen]. Use [NewHTTPServer].
// All methods may be called concurrently.
type HTTPServer struct {
	listen string
	server *http.Server
	logger *slog.Logger

	mu       sync.Mutex
	listener net.Listener
	served   chan struct{} // closed when the serving goroutine is done
}

// NewHTTPServer returns a server for handler; it listens on nothing yet. The
// error is from [Config.Validate].
func NewHTTPServer(cfg Config, handler http.Handler, opts ...Option) (*HTTPServer, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("invocation: config: %w", err)
	}
	o := collect(opts)
	return &HTTPServer{
		listen: cfg.HTTPListen,
		logger: o.logger,
		server: &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: cfg.ReadTimeout,
			ReadTimeout:       cfg.ReadTimeout,
			WriteTimeout:      cfg.WriteTimeout,
			IdleTimeout:       cfg.IdleTimeout,
			MaxHeaderBytes:    MaxBodyBytes,
			ErrorLog:          slog.NewLogLogger(o.logger.Handler(), slog.LevelDebug),
		},
	}, nil
}

// Start listens and serves behind the call; without an address it does nothing.
// The error is [ErrListen].
func (s *HTTPServer) Start(ctx context.Context) error {
	if s.listen == "" {
		return nil
	}
	l, err := listen(ctx, s.listen)
	if err != nil {
		return fmt.Errorf("http: %w", err)
	}
	s.mu.Lock()
	s.listener, s.served = l, make(chan struct{})
	s.mu.Unlock()
	go func() {
		defer close(s.served)
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("http front door failed", "error", err)
		}
	}()
	s.logger.Info("http front door open", "address", l.Addr().String())
	return nil
}

// Addr is where the server listens; nil before [HTTPServer.Start].
func (s *HTTPServer) Addr() net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Stop takes no further requests and waits for those running; when ctx ends
// first it cuts them off and returns [ErrForced]. It does nothing to a server
// that was not started or is stopped.
func (s *HTTPServer) Stop(ctx context.Context) error {
	s.mu.Lock()
	served := s.served
	s.mu.Unlock()
	if served == nil {
		return nil
	}
	err := s.server.Shutdown(ctx)
	if err != nil {
		_ = s.server.Close() // closing the listener twice is its only fault
		err = fmt.Errorf("http: %w: %w", ErrForced, err)
	}
	<-served
	return err
}

// listen opens a TCP listener. Nothing but the name look-up of the address can
// take time.
func listen(ctx context.Context, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%w on %s: %w", ErrListen, address, err)
	}
	return l, nil
}
