// Package config is the configuration of the headgate daemon: its keys, where
// their values come from, and what is refused.
//
// A value comes from, strongest first: a flag, the environment, the file, the
// default. Every key has one name in the environment: nats.tls.caFile is
// HEADGATE_NATS_TLS_CA_FILE. What no key is called is refused wherever it is
// written, and all faults are reported at once.
package config

import (
	"time"

	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/lifecycle"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf"
)

// Config is every key. Start from [Default]; [Load] fills it.
type Config struct {
	GRPC      Listener  `koanf:"grpc"`
	HTTP      Listener  `koanf:"http"`
	Admin     Listener  `koanf:"admin"`
	Insecure  bool      `koanf:"insecure"` // listeners beyond loopback without authentication
	Node      Node      `koanf:"node"`
	DataDir   string    `koanf:"dataDir"`
	NATS      NATS      `koanf:"nats"`
	Cluster   Cluster   `koanf:"cluster"`
	Policies  Policies  `koanf:"policies"`
	Limiter   Limiter   `koanf:"limiter"`
	Drain     Drain     `koanf:"drain"`
	Settle    Settle    `koanf:"settle"`
	Lifecycle Lifecycle `koanf:"lifecycle"`
	Hash      Hash      `koanf:"hash"`
	Log       Log       `koanf:"log"`
}

// Listener is one address to listen on.
type Listener struct {
	Listen string `koanf:"listen"` // host:port; port 0 takes a free one
}

// Node is this process among the others.
type Node struct {
	Name string `koanf:"name"` // unique, kept across restarts
}

// NATS is the store, or the server that this process runs for it.
type NATS struct {
	URL        string `koanf:"url"` // empty: a server in this process
	Replicas   int    `koanf:"replicas"`
	User       string `koanf:"user"`
	Password   string `koanf:"password" secret:"true"`
	Token      string `koanf:"token" secret:"true"`
	NKeyFile   string `koanf:"nkeyFile"`
	CredsFile  string `koanf:"credsFile"`
	TLS        TLS    `koanf:"tls"`
	SyncAlways bool   `koanf:"syncAlways"`
}

// TLS is a set of files in PEM form.
type TLS struct {
	CAFile   string `koanf:"caFile"`
	CertFile string `koanf:"certFile"`
	KeyFile  string `koanf:"keyFile"`
}

// Cluster makes the embedded server a member of a cluster.
type Cluster struct {
	Name     string   `koanf:"name"`
	Listen   string   `koanf:"listen"`
	Routes   []string `koanf:"routes"`
	User     string   `koanf:"user"`
	Password string   `koanf:"password" secret:"true"`
	TLS      TLS      `koanf:"tls"`
}

// Policies is where policies come from.
type Policies struct {
	Path  string       `koanf:"path"`
	Order []string     `koanf:"order"` // of file, bucket and nvcf; the first that knows a function wins
	NVCF  NVCFPolicies `koanf:"nvcf"`
}

// NVCFPolicies is the NVCF policy API; an empty Address means it is not asked.
type NVCFPolicies struct {
	Address   string        `koanf:"address"`
	Timeout   time.Duration `koanf:"timeout"`
	CacheTTL  time.Duration `koanf:"cacheTTL"`
	Algorithm string        `koanf:"algorithm"` // of its rates: sliding, fixed or token-bucket
	TokenFile string        `koanf:"tokenFile"`
	OAuth     OAuth         `koanf:"oauth"`
	TLS       ClientTLS     `koanf:"tls"`
}

// OAuth is client credentials.
type OAuth struct {
	TokenURL         string   `koanf:"tokenURL"`
	ClientID         string   `koanf:"clientID"`
	ClientSecretFile string   `koanf:"clientSecretFile"`
	Scopes           []string `koanf:"scopes"`
}

// ClientTLS is TLS towards a server that does not ask who we are.
type ClientTLS struct {
	Enabled bool   `koanf:"enabled"`
	CAFile  string `koanf:"caFile"`
}

// Limiter is the decisions of this node.
type Limiter struct {
	SyncInterval time.Duration `koanf:"syncInterval"`
	Attempt      time.Duration `koanf:"attempt"`
	MaxCells     int           `koanf:"maxCells"`
	IdleAfter    time.Duration `koanf:"idleAfter"`
}

// Drain is the first half of a shutdown.
type Drain struct {
	Notice time.Duration `koanf:"notice"`
	Grace  time.Duration `koanf:"grace"`
}

// Settle is the second half of a shutdown.
type Settle struct {
	Timeout time.Duration `koanf:"timeout"`
}

// Lifecycle is what must fit, and how a rollout is paced.
type Lifecycle struct {
	GracePeriod  time.Duration `koanf:"gracePeriod"`
	MinReady     time.Duration `koanf:"minReady"`
	LeaveTimeout time.Duration `koanf:"leaveTimeout"`
}

// Hash keys the hash of subjects; all nodes must agree on it.
type Hash struct {
	Secret     string `koanf:"secret" secret:"true"`
	SecretFile string `koanf:"secretFile"`
}

// Log is what is told to standard error.
type Log struct {
	Level  string `koanf:"level"`  // debug, info, warn, error
	Format string `koanf:"format"` // auto, text, json
}

// Default is one node alone on loopback, with its store in headgate-data.
func Default() Config {
	store, life, limiter := kvstore.DefaultConfig(), lifecycle.DefaultConfig(), ratelimit.DefaultConfig()
	set, api := policy.DefaultConfig(), nvcf.DefaultConfig()
	return Config{
		GRPC:    Listener{"127.0.0.1:7777"},
		HTTP:    Listener{"127.0.0.1:7778"},
		Admin:   Listener{"127.0.0.1:7776"},
		Node:    Node{store.NodeName},
		DataDir: store.DataDir,
		Cluster: Cluster{Name: store.Cluster.Name},
		Policies: Policies{
			Order: set.Order,
			NVCF:  NVCFPolicies{Timeout: api.Timeout, CacheTTL: api.CacheTTL, Algorithm: api.Algorithm},
		},
		Limiter: Limiter{
			SyncInterval: limiter.SyncInterval, Attempt: limiter.Attempt,
			MaxCells: limiter.MaxCells, IdleAfter: limiter.IdleAfter,
		},
		Drain:     Drain{life.DrainNotice, life.DrainGrace},
		Settle:    Settle{life.SettleTimeout},
		Lifecycle: Lifecycle{life.GracePeriod, life.MinReady, life.LeaveTimeout},
		Log:       Log{Level: "info", Format: "auto"},
	}
}
