package kvstore

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// Each faulty configuration names all its fields, and none shows a secret.
func TestConfig_validate(t *testing.T) {
	member := func(edit func(*Config)) func(*Config) {
		return func(c *Config) {
			c.Cluster.Listen = "127.0.0.1:6222"
			c.Cluster.Routes = []string{"nats-route://a:6222", "nats-route://b:6222"}
			edit(c)
		}
	}
	for _, c := range []struct {
		name string
		edit func(*Config)
		want []string // fields; none means valid
	}{
		{"default", func(*Config) {}, nil},
		{"external", func(c *Config) { c.URL = "nats://a:4222,tls://b:4222" }, nil},
		{"external, no host", func(c *Config) { c.URL = "nats://" }, []string{"URL"}},
		{"external, password in URL", func(c *Config) { c.URL = "nats://u:hunter2@a:4222" }, []string{"URL"}},
		{"external, unparsable with password", func(c *Config) { c.URL = "nats://u:hunter2@a:4222x" }, []string{"URL"}},
		{"two kinds of credentials", func(c *Config) {
			c.URL, c.Credentials = "nats://a:4222", Credentials{Token: "hunter2", CredsFile: "f"}
		}, []string{"Credentials"}},
		{"user without password", func(c *Config) {
			c.URL, c.Credentials = "nats://a:4222", Credentials{User: "u"}
		}, []string{"Credentials.User"}},
		{"certificate without key", func(c *Config) {
			c.URL, c.TLS = "nats://a:4222", TLS{CertFile: "f"}
		}, []string{"TLS.CertFile"}},
		{"credentials without URL", func(c *Config) { c.Credentials.Token = "hunter2" }, []string{"Credentials"}},
		{"two replicas alone", func(c *Config) { c.Replicas = 2 }, []string{"Replicas", "Replicas"}},
		{"many faults", func(c *Config) {
			c.NodeName, c.DataDir, c.HeartbeatInterval, c.NodeTTL, c.AttemptTimeout = "a b", "", 0, -1, time.Hour
			c.Secret, c.MaxStoreBytes = "hunter2", -1
		}, []string{"NodeName", "HeartbeatInterval", "NodeTTL", "AttemptTimeout", "Secret", "DataDir", "MaxStoreBytes"}},
		{"name with a dot at its end", func(c *Config) { c.NodeName = "a." }, []string{"NodeName"}},
		{"member", member(func(*Config) {}), nil},
		{"member beyond loopback", member(func(c *Config) { c.Cluster.Listen = "0.0.0.0:6222" }), []string{"Cluster.Listen"}},
		{"the same, with a password", member(func(c *Config) {
			c.Cluster.Listen, c.Cluster.User, c.Cluster.Password = ":6222", "u", "hunter2"
		}), nil},
		{"the same, with certificates", member(func(c *Config) {
			c.Cluster.Listen, c.Cluster.TLS = ":6222", TLS{CAFile: "ca", CertFile: "c", KeyFile: "k"}
		}), nil},
		{"half of the certificates", member(func(c *Config) {
			c.Cluster.Listen, c.Cluster.TLS = ":6222", TLS{CertFile: "c", KeyFile: "k"}
		}), []string{"Cluster.TLS", "Cluster.Listen"}},
		{"the same, insecure", member(func(c *Config) { c.Cluster.Listen, c.Cluster.Insecure = ":6222", true }), nil},
		{"too few routes", member(func(c *Config) { c.Cluster.Routes = c.Cluster.Routes[:1] }), []string{"Cluster.Routes"}},
		{"a route twice", member(func(c *Config) {
			c.Cluster.Routes = append(c.Cluster.Routes, c.Cluster.Routes[0])
		}), []string{"Cluster.Routes"}},
		{"password in a route", member(func(c *Config) {
			c.Cluster.Routes[0] = "nats-route://u:hunter2@a:6222"
		}), []string{"Cluster.Routes"}},
		{"routes alone", func(c *Config) { c.Cluster.Routes = []string{"nats-route://a:6222"} }, []string{"Cluster.Routes"}},
		{"cluster and URL", member(func(c *Config) { c.URL = "nats://a:4222" }), []string{"Cluster.Listen"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.NodeName = "node"
			c.edit(&cfg)
			err := cfg.Validate()
			if got := faultFields(err); strings.Join(got, " ") != strings.Join(c.want, " ") {
				t.Errorf("fields %v, want %v (%v)", got, c.want, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a secret: %v", err)
			}
			if _, newErr := New(cfg); (newErr == nil) != (err == nil) {
				t.Errorf("New: %v, Validate: %v", newErr, err)
			}
		})
	}
}

// faultFields lists the fields that a joined error names.
func faultFields(err error) []string {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var f []string
	for _, e := range joined.Unwrap() {
		var c *ConfigError
		if errors.As(e, &c) {
			f = append(f, c.Field)
		}
	}
	return f
}

func TestConfig_effectiveReplicas(t *testing.T) {
	alone := Config{}
	external := Config{URL: "nats://a:4222"}
	member := Config{Cluster: Cluster{Listen: "127.0.0.1:6222"}}
	single := Config{URL: "nats://a:4222", Replicas: 1}
	for want, cfgs := range map[int][]Config{1: {alone, single}, 3: {external, member}} {
		for _, c := range cfgs {
			if got := c.EffectiveReplicas(); got != want {
				t.Errorf("%+v: %d replicas, want %d", c, got, want)
			}
		}
	}
}
