package config

import (
	"time"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/lifecycle"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf"
)

// StoreConfig is the part of package kvstore.
func (c Config) StoreConfig() kvstore.Config {
	s := kvstore.DefaultConfig()
	s.URL, s.Replicas, s.NodeName = c.NATS.URL, c.NATS.Replicas, c.Node.Name
	s.Credentials = kvstore.Credentials{
		User: c.NATS.User, Password: c.NATS.Password, Token: c.NATS.Token,
		NKeyFile: c.NATS.NKeyFile, CredsFile: c.NATS.CredsFile,
	}
	s.TLS = kvstore.TLS(c.NATS.TLS)
	s.DataDir, s.SyncAlways = c.DataDir, c.NATS.SyncAlways
	s.Cluster = kvstore.Cluster{
		Name: c.Cluster.Name, Listen: c.Cluster.Listen, Routes: c.Cluster.Routes,
		User: c.Cluster.User, Password: c.Cluster.Password, TLS: kvstore.TLS(c.Cluster.TLS),
		Insecure: c.Insecure,
	}
	s.AttemptTimeout = c.requestTimeout()
	s.Secret = c.Hash.Secret
	return s
}

// requestTimeout bounds one request to the store. Whoever waits for an exchange
// waits for as long as two: a request that a leaving leader lost is then not the
// end of it. What limiter.attempt must be is the limiter's to say.
func (c Config) requestTimeout() time.Duration {
	return min(max(c.Limiter.Attempt/2, 10*time.Millisecond), 10*time.Second)
}

// LimiterConfig is the part of package ratelimit.
func (c Config) LimiterConfig() ratelimit.Config {
	l := ratelimit.DefaultConfig()
	l.Node = c.Node.Name
	l.SyncInterval, l.Attempt = c.Limiter.SyncInterval, c.Limiter.Attempt
	l.MaxCells, l.IdleAfter = c.Limiter.MaxCells, c.Limiter.IdleAfter
	return l
}

// LifeConfig is the part of package lifecycle.
func (c Config) LifeConfig() lifecycle.Config {
	l := lifecycle.DefaultConfig()
	l.GracePeriod, l.MinReady = c.Lifecycle.GracePeriod, c.Lifecycle.MinReady
	l.DrainNotice, l.DrainGrace = c.Drain.Notice, c.Drain.Grace
	l.SettleTimeout, l.LeaveTimeout = c.Settle.Timeout, c.Lifecycle.LeaveTimeout
	return l
}

// DoorsConfig is the part of package invocation.
func (c Config) DoorsConfig() invocation.Config {
	d := invocation.DefaultConfig()
	d.GRPCListen, d.HTTPListen = c.GRPC.Listen, c.HTTP.Listen
	return d
}

// PolicyConfig is the part of package policy.
func (c Config) PolicyConfig() policy.Config {
	p := policy.DefaultConfig()
	p.Path, p.Order = c.Policies.Path, c.Policies.Order
	return p
}

// NVCFConfig is the part of package nvcf.
func (c Config) NVCFConfig() nvcf.Config {
	from, n := c.Policies.NVCF, nvcf.DefaultConfig()
	n.Address, n.Timeout, n.CacheTTL, n.Algorithm = from.Address, from.Timeout, from.CacheTTL, from.Algorithm
	n.TokenFile, n.OAuth, n.TLS = from.TokenFile, nvcf.OAuth(from.OAuth), nvcf.TLS(from.TLS)
	return n
}
