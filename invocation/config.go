package invocation

import (
	"errors"
	"net"
	"time"
)

// MaxBodyBytes bounds a request on every front door. Four identifiers of
// [MaxIdentifierBytes] fit many times over.
const MaxBodyBytes = 64 << 10

// Config is what an operator sets. Start from [DefaultConfig].
type Config struct {
	// GRPCListen is the address of the gRPC front door, host:port; port 0
	// takes a free one. Empty means there is none.
	GRPCListen string
	// HTTPListen is the address of the HTTP front door, likewise.
	HTTPListen string
	// ReadTimeout bounds reading one HTTP request, header and body.
	ReadTimeout time.Duration
	// WriteTimeout bounds an HTTP request from its header to the last byte of
	// its answer.
	WriteTimeout time.Duration
	// IdleTimeout is how long an HTTP connection without a request is kept.
	IdleTimeout time.Duration
	// Keepalive is how long a gRPC connection may be silent before the server
	// asks whether the client is still there.
	Keepalive time.Duration
	// MaxStreams is how many calls one gRPC connection may have in flight.
	MaxStreams uint32
}

// DefaultConfig listens on loopback only.
func DefaultConfig() Config {
	return Config{
		GRPCListen:   "127.0.0.1:7777",
		HTTPListen:   "127.0.0.1:7778",
		ReadTimeout:  15 * time.Second,
		WriteTimeout: 30 * time.Second,
		IdleTimeout:  2 * time.Minute,
		Keepalive:    30 * time.Second,
		MaxStreams:   1000,
	}
}

// Validate reports every fault, joined; each is a [*ConfigError].
func (c Config) Validate() error {
	var faults []error
	for _, a := range []struct{ field, value string }{
		{"grpc.listen", c.GRPCListen}, {"http.listen", c.HTTPListen},
	} {
		if a.value == "" {
			continue
		}
		if _, _, err := net.SplitHostPort(a.value); err != nil {
			faults = append(faults, &ConfigError{a.field, a.value, "must be host:port"})
		}
	}
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"http.readTimeout", c.ReadTimeout}, {"http.writeTimeout", c.WriteTimeout},
		{"http.idleTimeout", c.IdleTimeout}, {"grpc.keepalive", c.Keepalive},
	} {
		if d.value <= 0 {
			faults = append(faults, &ConfigError{d.field, d.value, "must be more than 0"})
		}
	}
	if c.MaxStreams == 0 {
		faults = append(faults, &ConfigError{"grpc.maxStreams", c.MaxStreams, "must be at least 1"})
	}
	return errors.Join(faults...)
}
