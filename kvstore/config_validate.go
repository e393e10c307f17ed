package kvstore

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Bounds of [Config]'s settings.
const (
	maxNodeNameBytes = 64
	minSecretBytes   = 16
	minHeartbeat     = 50 * time.Millisecond
	maxHeartbeat     = time.Minute
	minAttempt       = 10 * time.Millisecond
	maxAttempt       = 10 * time.Second
	minNodeTTLBeats  = 2
	maxPort          = 65535
)

// nodeNamePattern is what is at once a NATS server name, a key-value key and
// part of a subject.
var nodeNamePattern = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// faults collects a Config's errors.
type faults []error

func (f *faults) add(field string, value any, why string) {
	*f = append(*f, &ConfigError{Field: field, Value: value, Why: why})
}

// Validate reports every fault, joined; each is a [*ConfigError].
func (c Config) Validate() error {
	var f faults
	c.checkNode(&f)
	if c.Embedded() {
		c.checkEmbedded(&f)
	} else {
		c.checkExternal(&f)
	}
	if r := c.Replicas; r != 0 && r != 1 && r != 3 && r != 5 {
		f.add("Replicas", r, "must be 1, 3 or 5, or 0 for the default")
	}
	return errors.Join(f...)
}

func (c Config) checkNode(f *faults) {
	if !nodeNamePattern.MatchString(c.NodeName) || len(c.NodeName) > maxNodeNameBytes {
		f.add("NodeName", strconv.Quote(c.NodeName), "must be 1 to 64 letters, digits, '-', '_' or inner dots")
	}
	if h := c.HeartbeatInterval; h < minHeartbeat || h > maxHeartbeat {
		f.add("HeartbeatInterval", h, "must be 50ms to 1m")
	}
	if c.NodeTTL < minNodeTTLBeats*c.HeartbeatInterval {
		f.add("NodeTTL", c.NodeTTL, "must be at least twice the HeartbeatInterval")
	}
	if a := c.AttemptTimeout; a < minAttempt || a > maxAttempt {
		f.add("AttemptTimeout", a, "must be 10ms to 10s")
	}
	if n := len(c.Secret); n != 0 && n < minSecretBytes {
		f.add("Secret", strconv.Itoa(n)+" bytes", "must be at least 16 bytes, or empty")
	}
}

func (c Config) checkExternal(f *faults) {
	for u := range strings.SplitSeq(c.URL, ",") {
		p, err := url.Parse(strings.TrimSpace(u))
		switch {
		case err != nil || p.Host == "":
			// The parser's error would repeat the whole text, password and all.
			f.add("URL", "(not shown)", "must be nats://host:port, comma separated")
		case p.User != nil:
			f.add("URL", p.Host, "must not hold credentials: they have settings of their own")
		}
	}
	if c.Cluster.Enabled() {
		f.add("Cluster.Listen", c.Cluster.Listen, "is for an embedded server and cannot go with URL")
	}
	if len(c.Credentials.kinds()) > 1 {
		f.add("Credentials", strings.Join(c.Credentials.kinds(), " and "), "must be of one kind")
	}
	if (c.Credentials.User == "") != (c.Credentials.Password == "") {
		f.add("Credentials.User", c.Credentials.User, "must go with Password")
	}
	c.TLS.check(f, "TLS")
}

// kinds names the kinds of credentials that are set.
func (c Credentials) kinds() []string {
	var k []string
	for _, x := range []struct{ name, value string }{
		{"User", c.User + c.Password}, {"Token", c.Token}, {"NKeyFile", c.NKeyFile}, {"CredsFile", c.CredsFile},
	} {
		if x.value != "" {
			k = append(k, x.name)
		}
	}
	return k
}

func (t TLS) check(f *faults, field string) {
	if (t.CertFile == "") != (t.KeyFile == "") {
		f.add(field+".CertFile", t.CertFile, "must go with KeyFile")
	}
}

// mutual reports whether both sides can show and check certificates.
func (t TLS) mutual() bool { return t.CAFile != "" && t.CertFile != "" && t.KeyFile != "" }

func (c Config) checkEmbedded(f *faults) {
	if c.DataDir == "" {
		f.add("DataDir", `""`, "is required for an embedded server")
	}
	if c.MaxStoreBytes < 0 {
		f.add("MaxStoreBytes", c.MaxStoreBytes, "must not be negative")
	}
	if len(c.Credentials.kinds()) > 0 || c.TLS != (TLS{}) {
		f.add("Credentials", "(set)", "credentials and TLS go with URL; an embedded server is reached inside the process")
	}
	if c.Cluster.Enabled() {
		c.checkCluster(f)
		return
	}
	if len(c.Cluster.Routes) > 0 {
		f.add("Cluster.Routes", c.Cluster.Routes, "need Cluster.Listen")
	}
	if c.Replicas > 1 {
		f.add("Replicas", c.Replicas, "a server alone keeps one replica; more need Cluster.Listen or URL")
	}
}

func (c Config) checkCluster(f *faults) {
	cl := c.Cluster
	if cl.Name == "" || strings.ContainsAny(cl.Name, " \t\r\n") {
		f.add("Cluster.Name", strconv.Quote(cl.Name), "must be set and hold no white space")
	}
	c.checkRoutes(f)
	if (cl.User == "") != (cl.Password == "") {
		f.add("Cluster.User", cl.User, "must go with Password")
	}
	if cl.TLS != (TLS{}) && !cl.TLS.mutual() {
		f.add("Cluster.TLS", cl.TLS.CertFile, "needs CAFile, CertFile and KeyFile")
	}
	host, port, err := splitHostPort(cl.Listen)
	if err != nil || port < 1 || port > maxPort {
		f.add("Cluster.Listen", cl.Listen, "must be host:port, the port 1 to 65535")
		return
	}
	if !isLoopback(host) && cl.User == "" && !cl.TLS.mutual() && !cl.Insecure {
		f.add("Cluster.Listen", cl.Listen,
			"listens beyond loopback without authentication: set User and Password or TLS, or Insecure")
	}
}

// checkRoutes asks for as many members as there are replicas: a member that
// knows fewer would elect a leader with too few voices.
func (c Config) checkRoutes(f *faults) {
	seen := make(map[string]bool)
	for _, r := range c.Cluster.Routes {
		u, err := url.Parse(r)
		switch {
		case err != nil || u.Hostname() == "" || u.Port() == "":
			f.add("Cluster.Routes", "(not shown)", "each must be nats-route://host:port")
		case u.User != nil:
			f.add("Cluster.Routes", u.Host, "must not hold credentials; use Cluster.User and Password")
		case seen[u.Host]:
			f.add("Cluster.Routes", u.Host, "is named twice")
		default:
			seen[u.Host] = true
		}
	}
	members := max(c.EffectiveReplicas(), minClusterMembers)
	if others := members - 1; len(c.Cluster.Routes) < others {
		f.add("Cluster.Routes", c.Cluster.Routes, "must name every member, at least the other "+strconv.Itoa(others))
	}
}

// minClusterMembers is the least that elects a leader of a JetStream cluster.
const minClusterMembers = 2

func splitHostPort(addr string) (host string, port int, err error) {
	host, p, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, err
	}
	port, err = strconv.Atoi(p)
	return host, port, err
}

// isLoopback reports whether host is an address of this machine only.
func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
