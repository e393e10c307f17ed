package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// write puts text into a file of its own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func flagSet(t *testing.T, args ...string) *pflag.FlagSet {
	t.Helper()
	set := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	AddFlags(set)
	if err := set.Parse(args); err != nil {
		t.Fatal(err)
	}
	return set
}

// Each source is stronger than the one before it, key by key.
func TestLoad_precedence(t *testing.T) {
	t.Parallel()
	file := write(t, "headgate.yaml", "log: {level: warn}\ndrain: {notice: 1s, grace: 4s}\nnode: {name: file}\n")
	cfg, err := Load(Sources{
		File:    file,
		Environ: []string{"HEADGATE_DRAIN_GRACE=5s", "HEADGATE_NODE_NAME=env", "PATH=/bin"},
		Flags:   flagSet(t, "--node-name", "flag"),
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{cfg.Log.Format, cfg.Log.Level, cfg.Drain.Notice, cfg.Drain.Grace, cfg.Node.Name}
	want := []any{"auto", "warn", time.Second, 5 * time.Second, "flag"}
	if !slices.Equal(got, want) {
		t.Errorf("default, file, file, environment, flag: got %v, want %v", got, want)
	}
}

func TestLoad_kinds(t *testing.T) {
	t.Parallel()
	file := write(t, "headgate.yaml", `
insecure: true
nats: {url: "nats://n:4222", replicas: 3, user: u, password: 12345}
policies: {order: [nvcf, file], path: }
cluster:
limiter: {maxCells: 10}
`)
	cfg, err := Load(Sources{File: file, Environ: []string{
		"HEADGATE_POLICIES_NVCF_CACHE_TTL=2m", "HEADGATE_POLICIES_NVCF_OAUTH_SCOPES=a, b,,",
		"HEADGATE_POLICIES_NVCF_OAUTH_TOKEN_URL=https://t/", "HEADGATE_POLICIES_NVCF_OAUTH_CLIENT_ID=c",
		"HEADGATE_POLICIES_NVCF_OAUTH_CLIENT_SECRET_FILE=/s", "HEADGATE_NATS_SYNC_ALWAYS=true",
		"HEADGATE_NATS_TLS_CA_FILE=/ca",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if !cfg.Insecure || cfg.NATS.Replicas != 3 || cfg.NATS.Password != "12345" || !cfg.NATS.SyncAlways || cfg.NATS.TLS.CAFile != "/ca" {
		t.Errorf("nats: %+v", cfg.NATS)
	}
	if !slices.Equal(cfg.Policies.Order, []string{"nvcf", "file"}) || cfg.Policies.NVCF.CacheTTL != 2*time.Minute ||
		!slices.Equal(cfg.Policies.NVCF.OAuth.Scopes, []string{"a", "b"}) {
		t.Errorf("policies: %+v", cfg.Policies)
	}
	if cfg.Limiter.MaxCells != 10 || cfg.Cluster.Name != "headgate" {
		t.Errorf("an empty section changed something: %+v", cfg)
	}
}

// What is wrong is told at once, with key, value and place, and no secret.
func TestLoad_faults(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name    string
		file    string
		environ []string
		flags   []string
		want    []string // lines of the error, in any order
	}{
		{
			name: "unknown keys", file: "natz: {url: x}\nlog: {lvl: debug}\ngrpc: 5\n",
			environ: []string{"HEADGATE_NAT_URL=x"},
			want: []string{
				`natz.url (file F): unknown key`, `log.lvl (file F): unknown key`,
				`grpc (file F): is a section of keys, not a value`,
				`HEADGATE_NAT_URL: no key has this name in the environment`,
			},
		},
		{
			name: "wrong kinds", file: "drain: {notice: 3}\nnats: {replicas: many}\ninsecure: maybe\npolicies: {order: 7}\n",
			environ: []string{"HEADGATE_SETTLE_TIMEOUT=soon"},
			want: []string{
				`drain.notice = "3" (file F): must be a duration with its unit, such as 500ms or 3s`,
				`nats.replicas = "many" (file F): must be a whole number`,
				`insecure = "maybe" (file F): must be true or false`,
				`policies.order = "7" (file F): must be a list, is 7`,
				`settle.timeout = "soon" (environment HEADGATE_SETTLE_TIMEOUT): must be a duration with its unit, such as 500ms or 3s`,
			},
		},
		{
			name: "listeners", flags: []string{"--grpc-listen", ":7777", "--http-listen", "nowhere", "--admin-listen", "10.0.0.1:1"},
			want: []string{
				`grpc.listen = ":7777": listens beyond loopback, where anybody could ask without authentication; set insecure (--insecure) if the network is trusted`,
				`admin.listen = "10.0.0.1:1": listens beyond loopback, where anybody could ask without authentication; set insecure (--insecure) if the network is trusted`,
				`http.listen = "nowhere": must be host:port`,
			},
		},
		{
			name: "parts under the names of the file", file: "nats: {replicas: 2}\nlimiter: {syncInterval: 1ms}\nlog: {level: loud, format: xml}\nhash: {secret: short}\npolicies: {nvcf: {address: nowhere, algorithm: best, timeout: 1h, oauth: {clientID: x}}}\n",
			flags: []string{"--node-name", "a b", "--drain-notice", "20s"},
			want: []string{
				`nats.replicas = "2"`, `limiter.syncInterval = "1ms"`, `log.level = "loud"`, `log.format = "xml"`,
				`node.name = "a b"`, `lifecycle.gracePeriod = "30s"`, `hash.secret = "5 bytes"`,
				`policies.nvcf.address = "nowhere"`, `policies.nvcf.algorithm = "best"`, `policies.nvcf.timeout = "1h0m0s"`,
				`policies.nvcf.oauth.clientSecretFile: is required`,
			},
		},
		{
			name: "reasons under the names of the file", file: "nats: {url: 'nats://n:4222', user: u, tls: {certFile: /c}}\ncluster: {listen: '127.0.0.1:0'}\n",
			want: []string{
				`cluster.listen = "127.0.0.1:0": is for an embedded server and cannot go with nats.url`,
				`nats.user = "u": must go with nats.password`, `nats.tls.certFile = "/c": must go with nats.tls.keyFile`,
			},
		},
		{
			name: "a cluster's", file: "cluster: {listen: '0.0.0.0:6222', routes: ['nats-route://u:hunter2@a:6222', 'nats-route://b:6222'], tls: {caFile: /c}}\n",
			want: []string{
				`cluster.listen = "0.0.0.0:6222": listens beyond loopback without authentication: set cluster.user and cluster.password or cluster.tls, or insecure (--insecure)`,
				`cluster.routes = "a:6222": must not hold credentials; use cluster.user and cluster.password`,
				`cluster.tls: needs cluster.tls.caFile, cluster.tls.certFile and cluster.tls.keyFile`,
			},
		},
		{name: "no port", file: "cluster: {listen: '127.0.0.1:0', routes: ['nats-route://a:1', 'nats-route://b:1']}\n", want: []string{`cluster.listen = "127.0.0.1:0": must be host:port, the port 1 to 65535`}},
		{name: "a list", file: "- a\n", want: []string{`config = "F": must be a YAML mapping of keys`}},
		{name: "not YAML", file: "a: [", want: []string{`config = "F"`}},
		{name: "a key twice", file: "insecure: true\ninsecure: false\n", want: []string{`already defined`}},
		{name: "a missing secret", file: "hash: {secretFile: /nonexistent}", want: []string{`hash.secretFile = "/nonexistent": no such file`}},
		{name: "two secrets", file: "hash: {secret: 0123456789abcdef, secretFile: /x}", want: []string{`hash.secretFile = "/x": cannot go with hash.secret`}},
		{name: "a secret of a wrong kind is not shown", file: "nats: {password: [hunter2]}", want: []string{`nats.password (file F): must be text, is a list`}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := write(t, "headgate.yaml", c.file)
			_, err := Load(Sources{File: file, Environ: c.environ, Flags: flagSet(t, c.flags...)})
			if !errors.Is(err, ErrConfig) {
				t.Fatalf("error %v, want ErrConfig", err)
			}
			text := strings.ReplaceAll(err.Error(), file, "F")
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("lacks %q in\n%s", want, text)
				}
			}
			lines := strings.Split(text, "\n")
			if slices.Sort(lines); len(slices.Compact(slices.Clone(lines))) != len(lines) {
				t.Errorf("tells something twice:\n%s", text)
			}
			if strings.Contains(text, "hunter2") {
				t.Error("shows a secret")
			}
		})
	}
}

func TestLoad_missingFile(t *testing.T) {
	t.Parallel()
	_, err := Load(Sources{File: "/nonexistent/headgate.yaml"})
	if want := `config = "/nonexistent/headgate.yaml": no such file or directory`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Kubernetes sets such variables for a Service named headgate, and the command
// line has some of its own.
func TestLoad_foreignEnvironment(t *testing.T) {
	t.Parallel()
	_, err := Load(Sources{Environ: []string{
		"HEADGATE_SERVICE_HOST=10.0.0.1", "HEADGATE_SERVICE_PORT=7777", "HEADGATE_SERVICE_PORT_GRPC=7777",
		"HEADGATE_PORT=tcp://10.0.0.1:7777", "HEADGATE_PORT_7777_TCP=tcp://10.0.0.1:7777",
		"HEADGATE_PORT_7777_TCP_ADDR=10.0.0.1", "HEADGATE_HEADLESS_PORT_7777_TCP_PROTO=tcp",
		"HEADGATE_SERVER=x", "HEADGATE_CHECK_SERVER=x", "HEADGATE_CONFIG=x",
	}})
	if err != nil {
		t.Error(err)
	}
}

// A listener beyond loopback is the operator's word.
func TestLoad_insecure(t *testing.T) {
	t.Parallel()
	cfg, err := Load(Sources{Flags: flagSet(t, "--grpc-listen", "0.0.0.0:7777", "--insecure")})
	if err != nil {
		t.Fatal(err)
	}
	if !cfg.StoreConfig().Cluster.Insecure {
		t.Error("the routes did not hear of it")
	}
	for _, loopback := range []string{"127.0.0.1:0", "[::1]:7777", "localhost:7777", "127.9.9.9:1"} {
		if _, err := Load(Sources{Flags: flagSet(t, "--grpc-listen", loopback)}); err != nil {
			t.Errorf("%s: %v", loopback, err)
		}
	}
}

func TestLoad_secretFile(t *testing.T) {
	t.Parallel()
	secret := write(t, "secret", "0123456789abcdef\n")
	cfg, err := Load(Sources{Environ: []string{"HEADGATE_HASH_SECRET_FILE=" + secret}})
	if err != nil || cfg.Hash.Secret != "0123456789abcdef" {
		t.Errorf("secret %q, %v", cfg.Hash.Secret, err)
	}
}

// What is printed is a file for [Load], but for the secrets, which it does not
// tell and whose place nobody can mistake for one.
func TestConfig_YAML(t *testing.T) {
	t.Parallel()
	file := write(t, "headgate.yaml", "nats: {url: 'nats://n:4222', user: u, password: hunter2hunter2}\nhash: {secret: 0123456789abcdef}\ndrain: {notice: 1s}\n")
	cfg, err := Load(Sources{File: file})
	if err != nil {
		t.Fatal(err)
	}
	text, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"hunter2", "0123456789abcdef"} {
		if strings.Contains(string(text), secret) {
			t.Errorf("shows %s", secret)
		}
	}
	_, err = Load(Sources{File: write(t, "as-is.yaml", string(text))})
	for _, key := range []string{"nats.password", "hash.secret"} {
		if err == nil || !strings.Contains(err.Error(), key+" (file ") {
			t.Errorf("%s was taken for a secret: %v", key, err)
		}
	}
	mended := strings.Replace(string(text), Redacted, "0123456789abcdef", 1) // hash.secret comes first
	mended = strings.Replace(mended, Redacted, "hunter2hunter2", 1)
	again, err := Load(Sources{File: write(t, "mended.yaml", mended)})
	if err != nil {
		t.Fatalf("the printed file: %v\n%s", err, text)
	}
	// As texts: an empty list comes back as one that is not nil.
	if got, want := fmt.Sprintf("%+v", again), fmt.Sprintf("%+v", cfg); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Every key has a name of its own in the environment, and every flag a key.
func TestKeys(t *testing.T) {
	t.Parallel()
	byEnv := make(map[string]string)
	for path, env := range EnvNames() {
		if other, twice := byEnv[env]; twice {
			t.Errorf("%s and %s are both %s", path, other, env)
		}
		byEnv[env] = path
		if foreignEnv(env) {
			t.Errorf("%s would be taken for a variable of Kubernetes", env)
		}
	}
	for _, want := range []string{"HEADGATE_DATA_DIR", "HEADGATE_POLICIES_NVCF_OAUTH_TOKEN_URL", "HEADGATE_NATS_NKEY_FILE", "HEADGATE_GRPC_LISTEN"} {
		if byEnv[want] == "" {
			t.Errorf("no key is called %s", want)
		}
	}
	set := flagSet(t)
	set.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(Keys(), flagKeys[f.Name]) {
			t.Errorf("--%s sets no key", f.Name)
		}
	})
	for name := range flagKeys {
		if set.Lookup(name) == nil {
			t.Errorf("--%s is not defined", name)
		}
	}
}

// A request to the store takes no more than half of what an invocation waits for
// it, so that a lost one leaves time for another.
func TestConfig_requestTimeout(t *testing.T) {
	t.Parallel()
	for attempt, want := range map[string]time.Duration{"100ms": 50 * time.Millisecond, "1s": 500 * time.Millisecond, "12ms": 10 * time.Millisecond} {
		cfg, err := Load(Sources{Environ: []string{"HEADGATE_LIMITER_ATTEMPT=" + attempt}})
		if got := cfg.StoreConfig().AttemptTimeout; err != nil || got != want {
			t.Errorf("limiter.attempt %s: requests take %v, %v; want %v", attempt, got, err, want)
		}
	}
}
