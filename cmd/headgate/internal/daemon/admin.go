package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/fx"

	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/lifecycle"
)

// Bounds of the admin listener. Answers are not bounded in time: a profile
// takes as long as it is asked to.
const (
	adminHeaderTimeout = 5 * time.Second
	adminReadTimeout   = 30 * time.Second
	adminIdleTimeout   = 2 * time.Minute
)

// adminConfig is where the admin listener is.
type adminConfig struct{ Listen string }

// adminServer serves health, metrics, profiles and the admin API. It is the
// first to start and the last to stop, so that a shutdown can be watched.
type adminServer struct {
	listen string
	server *http.Server
	log    *slog.Logger
	served chan struct{} // closed when the serving goroutine is done; nil before start
}

func newAdmin(
	cfg adminConfig, life *lifecycle.Node, api admin.Parts, reg *prometheus.Registry, build Build, log *slog.Logger,
) (*adminServer, error) {
	mux := http.NewServeMux()
	if err := admin.Register(mux, api, log); err != nil {
		return nil, err
	}
	life.Register(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /version", build.serve)
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return &adminServer{
		listen: cfg.Listen,
		log:    log,
		server: &http.Server{
			Handler:           mux,
			ReadHeaderTimeout: adminHeaderTimeout,
			ReadTimeout:       adminReadTimeout,
			IdleTimeout:       adminIdleTimeout,
			ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		},
	}, nil
}

func (b Build) serve(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	// Three strings always encode, and a caller that hung up needs nothing.
	_ = json.NewEncoder(w).Encode(b)
}

func hookAdmin(lc fx.Lifecycle, a *adminServer) { lc.Append(fx.StartStopHook(a.start, a.stop)) }

func (a *adminServer) start(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", a.listen)
	if err != nil {
		return fmt.Errorf("admin: cannot listen on %s: %w", a.listen, err)
	}
	a.served = make(chan struct{})
	go func() {
		defer close(a.served)
		if err := a.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			a.log.Error("admin listener failed", "error", err)
		}
	}()
	a.log.Info("admin listener open", "address", l.Addr().String())
	return nil
}

// stop waits for requests in flight until ctx ends and cuts off the rest.
func (a *adminServer) stop(ctx context.Context) error {
	if a.served == nil {
		return nil
	}
	err := a.server.Shutdown(ctx)
	if err != nil {
		_ = a.server.Close() // closing the listener twice is its only fault
	}
	<-a.served
	return err
}
