package nvcf

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

// Config is what an operator sets. Start from [DefaultConfig].
type Config struct {
	// Address of the API, "host:port". Empty means there is none.
	Address string
	// Timeout bounds one question, the token for it included, and so the time
	// that an invocation waits. 10 ms to 30 s.
	Timeout time.Duration
	// CacheTTL is how long an answer is good for. 100 ms to 24 h.
	CacheTTL time.Duration
	// MaxFunctions bounds the answers that are remembered, by version of a
	// function; those not used for longest go first. 1 to 1,000,000.
	MaxFunctions int
	// MaxInFlight bounds the questions under way at once. 1 to 1024.
	MaxInFlight int
	// Algorithm of the rates: "sliding", "fixed" or "token-bucket".
	Algorithm string

	// TokenFile holds a bearer token, or JSON with the token as nvcfApiToken.
	// It is read for each question, so a new token needs no restart.
	TokenFile string
	// OAuth gets tokens with client credentials, in the place of TokenFile.
	OAuth OAuth
	// TLS of the connection.
	TLS TLS
}

// OAuth is the client credentials flow. The zero value is none.
type OAuth struct {
	TokenURL string // http only towards this host itself
	ClientID string
	// ClientSecretFile holds the secret; it is read for each token.
	ClientSecretFile string
	Scopes           []string
}

func (o OAuth) enabled() bool {
	return o.TokenURL != "" || o.ClientID != "" || o.ClientSecretFile != "" || len(o.Scopes) > 0
}

// TLS of the connection to the API.
type TLS struct {
	Enabled bool
	CAFile  string // authorities to trust, in PEM; empty: those of the system
}

// DefaultConfig has no address.
func DefaultConfig() Config {
	return Config{
		Timeout:      500 * time.Millisecond,
		CacheTTL:     time.Minute,
		MaxFunctions: 10_000,
		MaxInFlight:  16,
		Algorithm:    counter.Sliding.String(),
	}
}

// ConfigError is one rejected setting.
type ConfigError struct {
	Field string
	Value any
	Why   string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("policy/nvcf: %s=%v: %s", e.Field, e.Value, e.Why)
}

// Validate reports every fault, joined; each is a [*ConfigError]. Without an
// Address only the other settings' bounds are looked at.
func (c Config) Validate() error {
	var faults []error
	refuse := func(field string, value any, why string) {
		faults = append(faults, &ConfigError{field, value, why})
	}
	if c.Address != "" {
		if _, port, err := net.SplitHostPort(c.Address); err != nil || port == "" {
			refuse("Address", c.Address, "must be host:port")
		}
	}
	if c.Timeout < 10*time.Millisecond || c.Timeout > 30*time.Second {
		refuse("Timeout", c.Timeout, "must be from 10ms to 30s")
	}
	if c.CacheTTL < 100*time.Millisecond || c.CacheTTL > 24*time.Hour {
		refuse("CacheTTL", c.CacheTTL, "must be from 100ms to 24h")
	}
	if c.MaxFunctions < 1 || c.MaxFunctions > 1_000_000 {
		refuse("MaxFunctions", c.MaxFunctions, "must be from 1 to 1000000")
	}
	if c.MaxInFlight < 1 || c.MaxInFlight > 1024 {
		refuse("MaxInFlight", c.MaxInFlight, "must be from 1 to 1024")
	}
	if _, err := counter.ParseAlgorithm(c.Algorithm); err != nil {
		refuse("Algorithm", c.Algorithm, "must be sliding, fixed or token-bucket")
	}
	if c.TLS.CAFile != "" && !c.TLS.Enabled {
		refuse("TLS.CAFile", c.TLS.CAFile, "needs TLS.Enabled")
	}
	return errors.Join(append(faults, c.validateOAuth()...)...)
}

func (c Config) validateOAuth() (faults []error) {
	if !c.OAuth.enabled() {
		return nil
	}
	if c.TokenFile != "" {
		faults = append(faults, &ConfigError{"OAuth", c.OAuth.TokenURL, "excludes TokenFile"})
	}
	for _, f := range []struct{ name, value string }{
		{"OAuth.ClientID", c.OAuth.ClientID}, {"OAuth.ClientSecretFile", c.OAuth.ClientSecretFile},
	} {
		if f.value == "" {
			faults = append(faults, &ConfigError{f.name, f.value, "is required with OAuth"})
		}
	}
	u, err := url.Parse(c.OAuth.TokenURL)
	switch {
	case err != nil || u.Host == "" || u.User != nil:
		faults = append(faults, &ConfigError{"OAuth.TokenURL", "(not shown)", "must be a URL with a host and without user information"})
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
	default:
		faults = append(faults, &ConfigError{"OAuth.TokenURL", u.Redacted(), "must be https"})
	}
	return faults
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
