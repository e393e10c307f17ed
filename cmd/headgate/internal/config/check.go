package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/lifecycle"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf"
)

// check reports every fault of the whole: those of the listeners and the log
// here, and those that the packages find in their parts, under the names that
// the keys have in the file.
func (c Config) check(faults *[]error) {
	c.checkListeners(faults)
	c.checkLog(faults)
	for _, part := range []struct {
		section string
		err     error
	}{
		{"nats", c.StoreConfig().Validate()},
		{"limiter", c.LimiterConfig().Validate()},
		{"lifecycle", c.LifeConfig().Validate()},
		{"invocation", c.DoorsConfig().Validate()},
		{"policies", c.PolicyConfig().Validate()},
		{"policies.nvcf", c.NVCFConfig().Validate()},
	} {
		for _, err := range flatten(part.err) {
			*faults = append(*faults, translate(part.section, err))
		}
	}
}

func (c Config) checkListeners(faults *[]error) {
	for _, l := range []struct{ key, address string }{
		{"grpc.listen", c.GRPC.Listen}, {"http.listen", c.HTTP.Listen}, {"admin.listen", c.Admin.Listen},
	} {
		switch host, ok := splitAddress(l.address); {
		case !ok:
			*faults = append(*faults, &Fault{Key: l.key, Value: l.address, Reason: "must be host:port"})
		case !isLoopback(host) && !c.Insecure:
			*faults = append(*faults, &Fault{Key: l.key, Value: l.address, Reason: "listens beyond loopback, where anybody could ask without authentication; " +
				"set insecure (--insecure) if the network is trusted"})
		}
	}
}

// splitAddress is the host of a listen address, and whether it is one.
func splitAddress(address string) (host string, ok bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", false
	}
	n, err := strconv.Atoi(port)
	return host, err == nil && n >= 0 && n <= 65535
}

// isLoopback reports whether only this machine can reach host. A name other
// than localhost may mean any address.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

func (c Config) checkLog(faults *[]error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		*faults = append(*faults, &Fault{Key: "log.level", Value: c.Log.Level, Reason: "must be debug, info, warn or error"})
	}
	if !slices.Contains([]string{"auto", "text", "json"}, c.Log.Format) {
		*faults = append(*faults, &Fault{Key: "log.format", Value: c.Log.Format, Reason: "must be auto, text or json"})
	}
}

// flatten takes joined errors apart.
func flatten(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, flatten(e)...)
		}
		return all
	}
	return []error{err}
}

// fileKeys is what the fields of the packages' own configurations are called
// in the file.
var fileKeys = map[string]string{
	"nats/URL":                             "nats.url",
	"nats/Replicas":                        "nats.replicas",
	"nats/NodeName":                        "node.name",
	"nats/DataDir":                         "dataDir",
	"nats/AttemptTimeout":                  "limiter.attempt",
	"nats/Secret":                          "hash.secret",
	"nats/Credentials":                     "nats",
	"nats/Credentials.User":                "nats.user",
	"nats/TLS.CertFile":                    "nats.tls.certFile",
	"nats/Cluster.Name":                    "cluster.name",
	"nats/Cluster.Listen":                  "cluster.listen",
	"nats/Cluster.Routes":                  "cluster.routes",
	"nats/Cluster.User":                    "cluster.user",
	"nats/Cluster.TLS":                     "cluster.tls",
	"limiter/Node":                         "node.name",
	"limiter/SyncInterval":                 "limiter.syncInterval",
	"limiter/Attempt":                      "limiter.attempt",
	"limiter/MaxCells":                     "limiter.maxCells",
	"limiter/IdleAfter":                    "limiter.idleAfter",
	"policies/Path":                        "policies.path",
	"policies/Order":                       "policies.order",
	"policies.nvcf/Address":                "policies.nvcf.address",
	"policies.nvcf/Timeout":                "policies.nvcf.timeout",
	"policies.nvcf/CacheTTL":               "policies.nvcf.cacheTTL",
	"policies.nvcf/Algorithm":              "policies.nvcf.algorithm",
	"policies.nvcf/TLS.CAFile":             "policies.nvcf.tls.caFile",
	"policies.nvcf/OAuth":                  "policies.nvcf.oauth",
	"policies.nvcf/OAuth.TokenURL":         "policies.nvcf.oauth.tokenURL",
	"policies.nvcf/OAuth.ClientID":         "policies.nvcf.oauth.clientID",
	"policies.nvcf/OAuth.ClientSecretFile": "policies.nvcf.oauth.clientSecretFile",
}

// translate names a package's fault as the file does.
func translate(section string, err error) error {
	var store *kvstore.ConfigError
	var life *lifecycle.ConfigError
	var doors *invocation.ConfigError
	var set *policy.ConfigError
	var api *nvcf.ConfigError
	switch {
	case errors.As(err, &store):
		return named(section, store.Field, store.Value, store.Why)
	case errors.As(err, &life):
		return &Fault{Key: life.Field, Value: shown(life.Value), Reason: life.Reason}
	case errors.As(err, &doors):
		return &Fault{Key: doors.Field, Value: shown(doors.Value), Reason: doors.Reason}
	case errors.As(err, &set):
		return named(section, set.Field, set.Value, set.Why)
	case errors.As(err, &api):
		return named(section, api.Field, api.Value, api.Why)
	}
	// "Field=value: reason"
	field, reason, _ := strings.Cut(err.Error(), ": ")
	field, value, _ := strings.Cut(field, "=")
	return named(section, field, value, reason)
}

func named(section, field string, value any, reason string) *Fault {
	key, ok := fileKeys[section+"/"+field]
	if !ok {
		key = section + "." + field
	}
	return &Fault{Key: key, Value: shown(value), Reason: reason}
}

// shown is a value as a fault repeats it; what a package quoted is quoted once.
func shown(value any) string {
	text := fmt.Sprint(value)
	if unquoted, err := strconv.Unquote(text); err == nil {
		return unquoted
	}
	return text
}
