package config

import (
	"log/slog"
	"net"
	"slices"
	"strconv"
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
