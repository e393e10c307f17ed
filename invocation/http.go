package invocation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// HTTPServer serves a handler on [Config.HTTPListen]. Use [NewHTTPServer].
// All methods may be called concurrently.
type HTTPServer struct {
	listen string
	server *http.Server
	logger *slog.Logger
	leaves atomic.Bool // each answer is the last on its connection

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
	s := &HTTPServer{listen: cfg.HTTPListen, logger: o.logger}
	s.server = &http.Server{
		Handler:           s.parting(handler),
		ReadHeaderTimeout: cfg.ReadTimeout,
		ReadTimeout:       cfg.ReadTimeout,
		WriteTimeout:      cfg.WriteTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    MaxBodyBytes,
		ErrorLog:          slog.NewLogLogger(o.logger.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// SetServing says whether callers should come to this server: while they should
// not, it answers as ever, but for the last time on each connection. Callers
// then connect elsewhere before the server stops, instead of finding their
// connection closed as they ask. They should, until it is called.
func (s *HTTPServer) SetServing(serving bool) { s.leaves.Store(!serving) }

// parting closes connections with an answer on them. [http.Server] can do so
// itself, but then closes idle connections too, and who asks on one just then
// gets no answer.
func (s *HTTPServer) parting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.leaves.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
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
