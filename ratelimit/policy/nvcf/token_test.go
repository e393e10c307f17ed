package nvcf

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/headgate-io/headgate/ratelimit/policy/nvcf/nvcfapipb"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// lastToken is the authorization of the last question.
func (a *api) lastToken() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.token
}

// A token is read for each question, plain or in the secrets JSON; while the
// file is being written the last good one serves.
func TestFileTokens(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "secrets")
	write(t, path, "first\n")
	a := startAPI(t, "", rate("10-S"))
	s, _ := start(t, a.address, func(c *Config) { c.TokenFile = path })
	ask := func(want, why string) {
		t.Helper()
		until(t, why, func() bool { units(s); return a.lastToken() == "Bearer "+want })
	}
	ask("first", "plain")
	write(t, path, `{"kv":1,"nvcfApiToken":"second"}`)
	ask("second", "secrets JSON")
	write(t, path, "")
	asked := a.asked.Load()
	until(t, "two more questions", func() bool { units(s); return a.asked.Load() >= asked+2 })
	ask("second", "an empty file")
	write(t, path, "third")
	ask("third", "a new token")
}

func TestReadToken_refuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, text := range []string{"", "  \n", "{", "{}", `{"nvcfApiToken":""}`, `{"nvcfApiToken":7}`, "sec ret", "sec\nret", "secrét", `{"nvcfApiToken":"sec ret"}`} {
		path := filepath.Join(dir, fmt.Sprint(i))
		write(t, path, text)
		_, err := readToken(path)
		if err == nil || strings.Contains(err.Error(), "sec") || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", text, err)
		}
	}
	for _, path := range []string{filepath.Join(dir, "missing"), dir} {
		if _, err := readToken(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// A token that cannot be read is a failure of the API, told once, without it.
func TestSource_noToken(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", rate("10-S"))
	path := filepath.Join(t.TempDir(), "secrets")
	s, f := start(t, a.address, func(c *Config) { c.TokenFile = path })
	if n, _, degraded := units(s); n != -1 || !degraded {
		t.Errorf("got %d, degraded %v", n, degraded)
	}
	if err := wait(t, f.faults, "fault"); !strings.Contains(err.Error(), "secrets") {
		t.Error(err)
	}
	write(t, path, "token")
	until(t, "policy", func() bool { n, _, _ := units(s); return n == 10 })
}

// oauthServer gives out the tokens token-1, token-2 and so on.
type oauthServer struct {
	*httptest.Server
	given  atomic.Int64
	life   atomic.Int64 // seconds; 0: without an end
	secret atomic.Pointer[string]
}

func startOAuth(t *testing.T) *oauthServer {
	t.Helper()
	o := &oauthServer{}
	o.secret.Store(new("s3cret"))
	o.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, secret, _ := r.BasicAuth()
		if err := r.ParseForm(); err != nil || id != "headgate" || secret != *o.secret.Load() ||
			r.Form.Get("grant_type") != "client_credentials" || r.Form.Get("scope") != "policies:read" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"not %s"}`, secret)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"bearer","expires_in":%d}`, o.given.Add(1), o.life.Load())
	}))
	t.Cleanup(o.Close)
	return o
}

func withOAuth(o *oauthServer, secretFile string) func(*Config) {
	return func(c *Config) {
		c.OAuth = OAuth{TokenURL: o.URL + "/token", ClientID: "headgate", ClientSecretFile: secretFile, Scopes: []string{"policies:read"}}
		c.Timeout = 5 * time.Second
	}
}

func TestOAuthTokens(t *testing.T) {
	t.Parallel()
	o := startOAuth(t)
	o.life.Store(3600)
	secret := filepath.Join(t.TempDir(), "client-secret")
	write(t, secret, "s3cret\n")
	a := startAPI(t, "", rate("10-S"))
	s, f := start(t, a.address, withOAuth(o, secret))
	asked := a.asked.Load()
	until(t, "several questions", func() bool { units(s); return a.asked.Load() >= asked+3 })
	if a.lastToken() != "Bearer token-1" || o.given.Load() != 1 {
		t.Errorf("token %q after %d were given", a.lastToken(), o.given.Load())
	}

	// The API refuses the token: the next question has another one.
	a.is(func(context.Context, function) (*nvcfapipb.RateLimitConfig, error) {
		if a.lastToken() == "Bearer token-1" {
			return nil, status.Error(codes.Unauthenticated, "token-1 was revoked")
		}
		return &nvcfapipb.RateLimitConfig{Rate: new("20-S")}, nil
	})
	until(t, "the second token", func() bool { n, stale, _ := units(s); return n == 20 && !stale })
	if err := wait(t, f.faults, "fault"); strings.Contains(err.Error(), "token-1") {
		t.Errorf("the fault holds a token: %v", err)
	}
}

// A token that ends soon is exchanged before that.
func TestOAuthTokens_expiry(t *testing.T) {
	t.Parallel()
	o := startOAuth(t)
	o.life.Store(2)
	secret := filepath.Join(t.TempDir(), "client-secret")
	write(t, secret, "s3cret")
	a := startAPI(t, "", rate("10-S"))
	s, f := start(t, a.address, withOAuth(o, secret))
	begin := time.Now()
	until(t, "the second token", func() bool { units(s); return a.lastToken() == "Bearer token-2" })
	if took := time.Since(begin); took > 1900*time.Millisecond {
		t.Errorf("the token was exchanged after %s", took)
	}
	if len(f.faults) > 0 {
		t.Error(<-f.faults)
	}
}

func TestOAuthTokens_refused(t *testing.T) {
	t.Parallel()
	o := startOAuth(t)
	secret := filepath.Join(t.TempDir(), "client-secret")
	write(t, secret, "wr0ng")
	a := startAPI(t, "", rate("10-S"))
	s, f := start(t, a.address, withOAuth(o, secret))
	if n, _, degraded := units(s); n != -1 || !degraded {
		t.Errorf("got %d, degraded %v", n, degraded)
	}
	if err := wait(t, f.faults, "fault"); !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), "wr0ng") {
		t.Error(err)
	}
	write(t, secret, "s3cret") // read again for the next token
	until(t, "policy", func() bool { n, _, _ := units(s); return n == 10 })
}

// certificate is a fresh one for 127.0.0.1, and the file that trusts it.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	write(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

func TestSource_tls(t *testing.T) {
	t.Parallel()
	cert, ca := certificate(t)
	a := startAPI(t, "", rate("10-S"), grpc.Creds(credentials.NewServerTLSFromCert(&cert)))
	s, _ := start(t, a.address, longTTL, func(c *Config) { c.TLS, c.Timeout = TLS{Enabled: true, CAFile: ca}, patience })
	if n, _, degraded := units(s); n != 10 || degraded {
		t.Errorf("trusted: got %d, degraded %v", n, degraded)
	}
	s, f := start(t, a.address, longTTL, func(c *Config) { c.TLS, c.Timeout = TLS{Enabled: true}, patience })
	if n, _, degraded := units(s); n != -1 || !degraded {
		t.Errorf("not trusted: got %d, degraded %v", n, degraded)
	}
	if err := wait(t, f.faults, "fault"); !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
	for _, file := range []string{filepath.Join(t.TempDir(), "missing"), os.Args[0]} {
		cfg := DefaultConfig()
		cfg.Address, cfg.TLS = a.address, TLS{Enabled: true, CAFile: file}
		s, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "TLS.CAFile") {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// A token that would travel in clear to another host is worth a warning.
func TestStart_warns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "token")
	write(t, path, "hush")
	for address, want := range map[string]bool{"policies.example:443": true, "127.0.0.1:1": false} {
		var log bytes.Buffer
		cfg := DefaultConfig()
		cfg.Address, cfg.TokenFile = address, path
		s, err := New(cfg, WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(log.String(), "without TLS") != want || strings.Contains(log.String(), "hush") {
			t.Errorf("%s: log %q", address, log.String())
		}
	}
}

func TestConfig_validate(t *testing.T) {
	t.Parallel()
	cfg := Config{
		Address: "nowhere", Timeout: 1, CacheTTL: 1, Algorithm: "leaky", TokenFile: "x", TLS: TLS{CAFile: "y"},
		OAuth: OAuth{TokenURL: "http://tokens.example/x"},
	}
	err := cfg.Validate()
	for _, want := range []string{
		"Address=nowhere", "Timeout=1ns", "CacheTTL=1ns", "MaxFunctions=0", "MaxInFlight=0", "Algorithm=leaky", "TLS.CAFile=y",
		"excludes TokenFile", "OAuth.ClientID=", "OAuth.ClientSecretFile=", "must be https",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not tell %q", err, want)
		}
	}
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	if _, err := New(DefaultConfig()); err == nil {
		t.Error("a source without an address was made")
	}
}
