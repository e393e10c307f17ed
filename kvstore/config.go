package kvstore

import (
	"os"
	"time"
)

// Config is what an operator sets. Start from [DefaultConfig].
type Config struct {
	// URL names the NATS servers, comma separated ("nats://a:4222,tls://b:4222").
	// Empty means a server in this process. User information in it is
	// refused: use Credentials.
	URL string
	// Credentials go with URL. The zero value authenticates with none.
	Credentials Credentials
	// TLS goes with URL. The zero value trusts the system's authorities where
	// a server asks for TLS.
	TLS TLS

	// Replicas of every bucket: 1, 3 or 5; 0 means 1 for a server alone and 3
	// otherwise. Existing buckets are raised to it and never lowered.
	Replicas int

	// NodeName names this node and its embedded server; it must be unique and
	// stay the same across restarts. Letters, digits, '-', '_' and inner
	// dots, at most 64 bytes. Default: the host's name.
	NodeName string

	// DataDir is where an embedded server keeps its store. One process at a
	// time, one node name for good.
	DataDir string
	// SyncAlways makes the embedded server flush each write to the disk before
	// it answers, for those who fear power loss of all members at once; an
	// exchange then takes about twice as long. Without it a crash of the
	// process loses nothing, a crash of the machine up to two minutes.
	SyncAlways bool
	// MaxStoreBytes bounds the embedded server's disk; 0 lets it use three
	// quarters of what is free.
	MaxStoreBytes int64
	// Cluster makes the embedded server a member of a cluster.
	Cluster Cluster

	// HeartbeatInterval is the mean time between two heartbeats of a node.
	// Default 1 s; 50 ms to 1 min.
	HeartbeatInterval time.Duration
	// NodeTTL is how long a silent node counts as alive; at least twice the
	// HeartbeatInterval. Default 5 s.
	NodeTTL time.Duration
	// AttemptTimeout bounds one request to the store; after it the outcome of
	// that request is unknown, and is asked about while somebody waits for the
	// exchange. It should be half of how long a caller waits, or less: then a
	// request that is lost with a leader is not the end of the exchange.
	// Default 50 ms; 10 ms to 10 s.
	AttemptTimeout time.Duration

	// Secret keys the hash of subjects; all nodes need the same one, at least
	// 16 bytes. Empty: the first node makes one and keeps it in the store.
	Secret string
}

// Credentials authenticate to external NATS servers. At most one kind is set.
type Credentials struct {
	User     string // with Password
	Password string
	Token    string
	NKeyFile string // a file that holds an nkey seed
	// CredsFile is a file with a user JWT and its nkey seed.
	CredsFile string
}

// TLS is a set of files in PEM form.
type TLS struct {
	CAFile   string // authorities to trust; empty: those of the system
	CertFile string // own certificate, with KeyFile
	KeyFile  string
}

// Cluster is an embedded server's place in a cluster of nodes.
type Cluster struct {
	// Name must be the same on all members. Default "headgate".
	Name string
	// Listen is the address for the other members' routes, "host:port". Empty
	// means the server is alone.
	Listen string
	// Routes names every member, "nats-route://host:port" each; this node may
	// be among them. One name counts as one member, however many addresses it
	// has.
	Routes []string
	// User and Password authenticate members to one another; set on all of
	// them alike.
	User     string
	Password string
	// TLS encrypts routes and makes both sides show certificates; all three
	// files are needed.
	TLS TLS
	// Insecure lets a cluster listen beyond loopback without authentication.
	Insecure bool
}

// Enabled reports whether the embedded server is a member of a cluster.
func (c Cluster) Enabled() bool { return c.Listen != "" }

// DefaultConfig is one server alone in this process, keeping its store in
// "headgate-data".
func DefaultConfig() Config {
	name, err := os.Hostname()
	if err != nil {
		name = "" // Validate asks for one
	}
	return Config{
		NodeName:          name,
		DataDir:           "headgate-data",
		Cluster:           Cluster{Name: "headgate"},
		HeartbeatInterval: time.Second,
		NodeTTL:           5 * time.Second,
		AttemptTimeout:    50 * time.Millisecond,
	}
}

// Embedded reports whether the store's server runs in this process.
func (c Config) Embedded() bool { return c.URL == "" }

// EffectiveReplicas is Replicas with 0 resolved.
func (c Config) EffectiveReplicas() int {
	switch {
	case c.Replicas != 0:
		return c.Replicas
	case c.Embedded() && !c.Cluster.Enabled():
		return 1
	default:
		return 3
	}
}
