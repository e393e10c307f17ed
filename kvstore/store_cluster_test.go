package kvstore

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/ports"
)

// memberConfigs are three members of one cluster on loopback.
func memberConfigs(t testing.TB) []Config {
	t.Helper()
	dir := t.TempDir()
	free := ports.Free(t, 3)
	var routes []string
	for _, p := range free {
		routes = append(routes, fmt.Sprintf("nats-route://127.0.0.1:%d", p))
	}
	var all []Config
	for i, p := range free {
		cfg := testConfig(t)
		cfg.NodeName = fmt.Sprintf("node-%d", i)
		cfg.DataDir = filepath.Join(dir, cfg.NodeName)
		cfg.Cluster.Listen = fmt.Sprintf("127.0.0.1:%d", p)
		cfg.Cluster.Routes = routes
		all = append(all, cfg)
	}
	return all
}

// startStores starts a store for each configuration.
func startStores(t testing.TB, cfgs []Config) []*Store {
	t.Helper()
	var all []*Store
	for _, cfg := range cfgs {
		all = append(all, startStore(t, cfg))
	}
	return all
}

// Three members that start on empty directories are all joined within five
// seconds and see one another, and each holds a replica of every bucket.
func TestStore_threeMembersFromNothing(t *testing.T) {
	began := time.Now()
	stores := startStores(t, memberConfigs(t))
	awaitJoined(t, stores...)
	took := time.Since(began)
	t.Logf("joined after %v", took)
	if took > 5*time.Second {
		t.Errorf("joined after %v, want under 5s", took)
	}
	for _, s := range stores {
		if err := failing(s); err != nil {
			t.Errorf("%s: %v", s.cfg.NodeName, err)
		}
		await(t, "every node sees three", func() bool { return s.Live() == 3 })
		for _, b := range bucketNames() {
			await(t, "each holds bucket "+b, func() bool { return s.server.current(streamPrefix + b) })
		}
	}
}
