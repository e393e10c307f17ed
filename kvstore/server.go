package kvstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Bounds of an embedded server's life.
const (
	healthPoll = 10 * time.Millisecond // between two looks while it starts
)

// errServerStopped: the server went down by itself.
var errServerStopped = errors.New("embedded server stopped")

// embedded is a NATS server in this process.
type embedded struct {
	srv    *server.Server
	log    *serverLog
	token  string // what a client must know; never leaves the process
	member bool
	// gather waits for the other members; nil for a member with a past, and for
	// a server alone.
	gather func(ctx context.Context, note func(error)) error
	// patient: a first election that elects nobody is waited out.
	patient bool
}

// serverOptions translates cfg. A server alone has no listener at all. A
// member needs a client listener, or else its routes never start; that one is
// on loopback, at a port the system picks, and asks for token.
func serverOptions(cfg Config, storeDir, token string) (*server.Options, error) {
	o := &server.Options{
		ServerName:             cfg.NodeName,
		DontListen:             true,
		NoSigs:                 true,
		JetStream:              true,
		StoreDir:               storeDir,
		SyncAlways:             cfg.SyncAlways,
		JetStreamMaxStore:      cfg.MaxStoreBytes,
		DisableJetStreamBanner: true,
		Authorization:          token,
	}
	if !cfg.Cluster.Enabled() {
		return o, nil
	}
	o.DontListen = false
	o.Host, o.Port = "127.0.0.1", server.RANDOM_PORT
	if err := clusterOptions(o, cfg); err != nil {
		return nil, err
	}
	return o, nil
}

// clusterOptions adds what a member needs.
func clusterOptions(o *server.Options, cfg Config) error {
	cl := cfg.Cluster
	host, port, err := splitHostPort(cl.Listen)
	if err != nil {
		return fmt.Errorf("kvstore: Cluster.Listen: %w", err)
	}
	o.Cluster = server.ClusterOpts{
		Name:     cl.Name,
		Host:     host,
		Port:     port,
		Username: cl.User,
		Password: cl.Password,
		// The client listener is of no use to other machines.
		NoAdvertise: true,
	}
	if cl.TLS != (TLS{}) {
		if o.Cluster.TLSConfig, err = cl.TLS.routes(); err != nil {
			return err
		}
		o.Cluster.TLSTimeout = float64(connectTimeout / time.Second)
	}
	for _, r := range cl.Routes {
		u, err := url.Parse(r)
		if err != nil {
			return fmt.Errorf("kvstore: Cluster.Routes: %w", err)
		}
		o.Routes = append(o.Routes, withUser(u, cl))
	}
	// The server takes the number of routes for the number of members; where
	// this one is not among them it has to be added. It notices that it talks
	// to itself, and drops that route.
	if len(o.Routes) < max(cfg.EffectiveReplicas(), minClusterMembers) {
		self := &url.URL{Scheme: "nats-route", Host: cl.Listen}
		o.Routes = append(o.Routes, withUser(self, cl))
	}
	return nil
}

func withUser(u *url.URL, cl Cluster) *url.URL {
	if cl.User == "" {
		return u
	}
	c := *u
	c.User = url.UserPassword(cl.User, cl.Password)
	return &c
}

// newEmbedded prepares a server on storeDir and starts nothing.
func newEmbedded(cfg Config, storeDir string, log *slog.Logger) (*embedded, error) {
	e := &embedded{log: &serverLog{log: log}, token: rand.Text(), member: cfg.Cluster.Enabled()}
	opts, err := serverOptions(cfg, storeDir, e.token)
	if err != nil {
		return nil, err
	}
	if e.member && !hasMetaGroup(storeDir) {
		e.gather = func(ctx context.Context, note func(error)) error {
			return gather(ctx, cfg.Cluster.Listen, opts.Routes, note)
		}
	}
	e.srv, err = server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("kvstore: embedded server: %w", err)
	}
	e.srv.SetLoggerV2(e.log, false, false, false)
	return e, nil
}

// run starts the server and waits until JetStream may be spoken to. Before its
// health is good, a member would create buckets of its own, as orphans that
// its cluster does not know. It is called once. Errors: [errNotElected], what
// the server calls fatal, that of ctx.
func (e *embedded) run(ctx context.Context, note func(error)) error {
	if e.gather != nil {
		if err := e.gather(ctx, note); err != nil {
			return err
		}
	}
	e.srv.Start() // recovers what is on disk before it returns
	began := time.Now()
	tick := time.NewTicker(healthPoll)
	defer tick.Stop()
	for {
		if err := e.log.failure(); err != nil {
			return err
		}
		if !e.srv.Running() {
			return errServerStopped
		}
		unwell := e.health()
		if unwell == nil {
			return nil
		}
		if e.gather != nil && !e.patient && time.Since(began) > firstElection && !e.led() {
			return errNotElected
		}
		note(fmt.Errorf("embedded server: %w", unwell))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// health is nil when JetStream may be spoken to: the server knows what the cluster
// has, and has what it should have of what lasts. Else it is the first thing that
// is wrong.
func (e *embedded) health() error {
	h := e.srv.Healthz(&server.HealthzOptions{Details: true})
	for _, wrong := range h.Errors {
		if bucket := strings.TrimPrefix(wrong.Stream, streamPrefix); lasting(bucket) {
			return errors.New(wrong.Error)
		}
	}
	return nil
}

// led reports whether the cluster has a leader.
func (e *embedded) led() bool {
	z, err := e.srv.Jsz(nil)
	return err == nil && z.Meta != nil && z.Meta.Leader != ""
}

// stop hands leaderships over, closes the store and waits for that.
// LameDuckShutdown would wait a second for clients that there are none of.
func (e *embedded) stop() {
	e.srv.Shutdown()
	e.srv.WaitForShutdown()
}

// current reports whether this server holds its replica of a bucket up to
// date; nothing to say for a server alone.
func (e *embedded) current(stream string) bool {
	return !e.member || e.srv.JetStreamIsStreamCurrent(server.DEFAULT_GLOBAL_ACCOUNT, stream)
}
