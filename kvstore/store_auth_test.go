package kvstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// writeFile puts content into a file of the test's folder.
func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve runs a server with these options and returns its URL.
func serve(t *testing.T, edit func(*server.Options)) string {
	t.Helper()
	o := &server.Options{
		ServerName: "guarded", Host: "127.0.0.1", Port: server.RANDOM_PORT,
		JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
	}
	edit(o)
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testPatience) {
		t.Fatal("server takes no connections")
	}
	return fmt.Sprintf("nats://127.0.0.1:%d", s.Addr().(*net.TCPAddr).Port)
}

// joinsOnlyWith checks that a node joins with its credentials, and without them
// stays outside, says so, and lives.
func joinsOnlyWith(t *testing.T, url string, edit func(*Config)) {
	t.Helper()
	cfg := externalConfig(t, 1)
	cfg.URL = url
	stranger := startStore(t, cfg)
	edit(&cfg)
	guest := startStore(t, cfg)
	awaitJoined(t, guest)
	await(t, "the stranger is told why", func() bool { return stranger.Checks()[0].Err != nil })
	select {
	case <-stranger.Joined():
		t.Error("a node without credentials joined")
	default:
	}
}

func TestStore_userAndPassword(t *testing.T) {
	url := serve(t, func(o *server.Options) { o.Username, o.Password = "u", "hunter2" })
	joinsOnlyWith(t, url, func(c *Config) { c.Credentials = Credentials{User: "u", Password: "hunter2"} })
}

func TestStore_token(t *testing.T) {
	url := serve(t, func(o *server.Options) { o.Authorization = "hunter2" })
	joinsOnlyWith(t, url, func(c *Config) { c.Credentials = Credentials{Token: "hunter2"} })
}

func TestStore_nkey(t *testing.T) {
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := user.Seed()
	public, _ := user.PublicKey()
	url := serve(t, func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} })
	joinsOnlyWith(t, url, func(c *Config) { c.Credentials = Credentials{NKeyFile: writeFile(t, "seed", seed)} })
}

// A credentials file holds a JWT that an account signed, which an operator
// signed.
func TestStore_credentialsFile(t *testing.T) {
	operator, _ := nkeys.CreateOperator()
	account, _ := nkeys.CreateAccount()
	system, _ := nkeys.CreateAccount()
	user, _ := nkeys.CreateUser()
	public := func(k nkeys.KeyPair) string { p, _ := k.PublicKey(); return p }
	must := func(token string, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	claims := jwt.NewAccountClaims(public(account))
	claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	resolver := &server.MemAccResolver{}
	for key, token := range map[string]string{
		public(account): must(claims.Encode(operator)),
		public(system):  must(jwt.NewAccountClaims(public(system)).Encode(operator)),
	} {
		if err := resolver.Store(key, token); err != nil {
			t.Fatal(err)
		}
	}
	url := serve(t, func(o *server.Options) {
		o.TrustedKeys = []string{public(operator)}
		o.AccountResolver = resolver
		o.SystemAccount = public(system)
	})
	seed, _ := user.Seed()
	creds, err := jwt.FormatUserConfig(must(jwt.NewUserClaims(public(user)).Encode(account)), seed)
	if err != nil {
		t.Fatal(err)
	}
	joinsOnlyWith(t, url, func(c *Config) { c.Credentials = Credentials{CredsFile: writeFile(t, "creds", creds)} })
}

// A server that asks for certificates gets one, and is checked by its own.
func TestStore_tls(t *testing.T) {
	ca, cert, key := certificates(t)
	files := TLS{CAFile: writeFile(t, "ca.pem", ca), CertFile: writeFile(t, "cert.pem", cert), KeyFile: writeFile(t, "key.pem", key)}
	config, err := files.routes() // both sides show certificates
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, func(o *server.Options) { o.TLSConfig, o.TLS, o.TLSVerify, o.TLSTimeout = config, true, true, 5 })
	joinsOnlyWith(t, url, func(c *Config) { c.TLS = files })
}

// Members of a cluster may have to show certificates and passwords to one
// another.
func TestStore_membersWithTLSAndPassword(t *testing.T) {
	ca, cert, key := certificates(t)
	files := TLS{CAFile: writeFile(t, "ca.pem", ca), CertFile: writeFile(t, "cert.pem", cert), KeyFile: writeFile(t, "key.pem", key)}
	cfgs := memberConfigs(t)
	for i := range cfgs {
		cfgs[i].Cluster.TLS = files
		cfgs[i].Cluster.User, cfgs[i].Cluster.Password = "member", "hunter2"
	}
	awaitJoined(t, startStores(t, cfgs)...)
}

// Files that cannot be read are told at Start.
func TestStore_missingFilesFailFast(t *testing.T) {
	for _, edit := range []func(*Config){
		func(c *Config) { c.TLS.CAFile = "missing" },
		func(c *Config) { c.TLS.CertFile, c.TLS.KeyFile = "missing", "missing" },
		func(c *Config) { c.Credentials.NKeyFile = "missing" },
		func(c *Config) { c.Credentials.CredsFile = "missing" },
	} {
		cfg := externalConfig(t, 1)
		edit(&cfg)
		s, err := New(cfg, WithLogger(testLog(t)))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Start with %+v %+v: %v, want ErrNotExist", cfg.TLS, cfg.Credentials, err)
		}
	}
}

// certificates makes an authority and a certificate for this machine.
func certificates(t *testing.T) (ca, cert, key []byte) {
	t.Helper()
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test"},
		NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte, err error) []byte {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &signer.PublicKey, signer)
	ca = encode("CERTIFICATE", der, err)
	der, err = x509.CreateCertificate(rand.Reader, leaf, authority, &own.PublicKey, signer)
	cert = encode("CERTIFICATE", der, err)
	der, err = x509.MarshalPKCS8PrivateKey(own)
	key = encode("PRIVATE KEY", der, err)
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	return ca, cert, key
}
