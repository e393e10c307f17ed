package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/lifecycle"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf"
)

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
	"nats/Credentials.Password":            "nats.password",
	"nats/TLS":                             "nats.tls",
	"nats/TLS.CertFile":                    "nats.tls.certFile",
	"nats/TLS.KeyFile":                     "nats.tls.keyFile",
	"nats/Cluster.Name":                    "cluster.name",
	"nats/Cluster.Listen":                  "cluster.listen",
	"nats/Cluster.Routes":                  "cluster.routes",
	"nats/Cluster.User":                    "cluster.user",
	"nats/Cluster.Password":                "cluster.password",
	"nats/Cluster.Insecure":                "insecure (--insecure)",
	"nats/Cluster.TLS":                     "cluster.tls",
	"nats/Cluster.TLS.CAFile":              "cluster.tls.caFile",
	"nats/Cluster.TLS.CertFile":            "cluster.tls.certFile",
	"nats/Cluster.TLS.KeyFile":             "cluster.tls.keyFile",
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
	var limiter *ratelimit.ConfigError
	var life *lifecycle.ConfigError
	var doors *invocation.ConfigError
	var set *policy.ConfigError
	var api *nvcf.ConfigError
	switch {
	case errors.As(err, &store):
		return named(section, store.Field, store.Value, store.Why)
	case errors.As(err, &limiter):
		return named(section, limiter.Field, limiter.Value, limiter.Why)
	case errors.As(err, &life):
		return &Fault{Key: life.Field, Value: shown(life.Value), Reason: life.Reason}
	case errors.As(err, &doors):
		return &Fault{Key: doors.Field, Value: shown(doors.Value), Reason: doors.Reason}
	case errors.As(err, &set):
		return named(section, set.Field, set.Value, set.Why)
	case errors.As(err, &api):
		return named(section, api.Field, api.Value, api.Why)
	}
	return fmt.Errorf("%w: %s: %w", ErrConfig, section, err)
}

func named(section, field string, value any, reason string) *Fault {
	key, ok := fileKeys[section+"/"+field]
	if !ok {
		key = section + "." + field
	}
	return &Fault{Key: key, Value: shown(value), Reason: inFile(section, field, reason)}
}

// fieldName is what may be the name of a field in a sentence.
var fieldName = regexp.MustCompile(`\b[A-Z][A-Za-z]*(\.[A-Z][A-Za-z]*)*\b`)

// inFile puts the file's names for the fields that a reason names: they are
// below the field that the fault is about, beside it, or named in full.
func inFile(section, field, reason string) string {
	parent := ""
	if i := strings.LastIndexByte(field, '.'); i >= 0 {
		parent = field[:i+1]
	}
	return fieldName.ReplaceAllStringFunc(reason, func(name string) string {
		for _, full := range []string{field + "." + name, parent + name, name} {
			if key, ok := fileKeys[section+"/"+full]; ok {
				return key
			}
		}
		return name
	})
}

// shown is a value as a fault repeats it; what a package quoted is quoted once.
func shown(value any) string {
	text := fmt.Sprint(value)
	if unquoted, err := strconv.Unquote(text); err == nil {
		return unquoted
	}
	return text
}
