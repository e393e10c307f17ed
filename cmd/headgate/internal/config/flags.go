package config

import "github.com/spf13/pflag"

// flagKeys is the key of every flag.
var flagKeys = map[string]string{
	"grpc-listen":    "grpc.listen",
	"http-listen":    "http.listen",
	"admin-listen":   "admin.listen",
	"insecure":       "insecure",
	"node-name":      "node.name",
	"data-dir":       "dataDir",
	"nats-url":       "nats.url",
	"nats-replicas":  "nats.replicas",
	"cluster-listen": "cluster.listen",
	"cluster-routes": "cluster.routes",
	"policies":       "policies.path",
	"drain-notice":   "drain.notice",
	"drain-grace":    "drain.grace",
	"settle-timeout": "settle.timeout",
	"grace-period":   "lifecycle.gracePeriod",
	"min-ready":      "lifecycle.minReady",
	"log-level":      "log.level",
	"log-format":     "log.format",
}

func flagOf(path string) string {
	for name, of := range flagKeys {
		if of == path {
			return name
		}
	}
	return path
}

// AddFlags defines the flags that [Load] reads. Secrets have none: a command
// line is seen by every user of a machine.
func AddFlags(f *pflag.FlagSet) {
	d := Default()
	f.String("grpc-listen", d.GRPC.Listen, "gRPC front door, `host:port`")
	f.String("http-listen", d.HTTP.Listen, "HTTP front door, `host:port`")
	f.String("admin-listen", d.Admin.Listen, "health, metrics, profiles and the admin API, `host:port`")
	f.Bool("insecure", false, "allow listeners beyond loopback without authentication")
	f.String("node-name", d.Node.Name, "this node's `name`, unique and kept across restarts")
	f.String("data-dir", d.DataDir, "`directory` of the embedded server's store")
	f.String("nats-url", "", "NATS servers to use instead of an embedded one, `url[,url]`")
	f.Int("nats-replicas", 0, "replicas of every bucket; 0 is 1 for a node alone, else 3")
	f.String("cluster-listen", "", "route listener of the embedded server, `host:port`; makes it a member of a cluster")
	f.StringSlice("cluster-routes", nil, "every member of the cluster, `nats-route://host:port`, comma separated")
	f.String("policies", "", "policy `file or directory`, watched")
	f.Duration("drain-notice", d.Drain.Notice, "how long to serve on after saying not ready")
	f.Duration("drain-grace", d.Drain.Grace, "bound of the graceful close of the front doors")
	f.Duration("settle-timeout", d.Settle.Timeout, "bound of settling what is owed to the store")
	f.Duration("grace-period", d.Lifecycle.GracePeriod, "what the whole shutdown must fit in")
	f.Duration("min-ready", d.Lifecycle.MinReady, "how long all checks must hold before the node is ready")
	f.String("log-level", d.Log.Level, "debug, info, warn or error")
	f.String("log-format", d.Log.Format, "auto (text on a terminal), text or json")
}
