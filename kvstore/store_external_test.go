package kvstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/test/ports"
)

// externalConfig is a client of a server on a port of this machine.
func externalConfig(t testing.TB, port int) Config {
	t.Helper()
	cfg := testConfig(t)
	cfg.DataDir = ""
	cfg.URL = fmt.Sprintf("nats://127.0.0.1:%d", port)
	cfg.Replicas = 1
	return cfg
}

// spend takes units of a counter of 10 per hour and returns how many it got.
func spend(t testing.TB, s *Store, key ratelimit.Key, serial uint64, units int64) int64 {
	t.Helper()
	g, err := s.Exchange(t.Context(), ratelimit.Exchange{
		Key:   key,
		Rates: []counter.Rate{{Units: 10, Period: time.Hour}},
		Needs: []ratelimit.Need{{Cost: 1, Count: units}},
		Node:  "test", Serial: serial,
	})
	if err != nil {
		t.Fatalf("exchange: %v", err)
	}
	return g.Units
}

// A node that starts long before its NATS waits, says so, answers at once that
// the store is away, and is ready within two seconds of NATS being up.
func TestStore_startedBeforeItsNATS(t *testing.T) {
	port := ports.Free(t, 1)[0]
	s := startStore(t, externalConfig(t, port))
	await(t, "connected fails", func() bool { return s.Checks()[0].Err != nil })

	_, err := s.Exchange(t.Context(), ratelimit.Exchange{Key: "f.v.account.a"})
	if !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("exchange before joining: %v, want ErrUnavailable", err)
	}
	startProcess(t, serverSpec{Port: port, StoreDir: t.TempDir()})
	began := time.Now()
	awaitJoined(t, s)
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("joined %v after NATS was up, want 2s at most", took)
	}
}

// NATS is killed under a joined node: the node notices, keeps its list of nodes
// and its clock, answers at once, and goes on when NATS is back with what was
// spent.
func TestStore_survivesItsNATS(t *testing.T) {
	spec := serverSpec{Port: ports.Free(t, 1)[0], StoreDir: t.TempDir()}
	nats := startProcess(t, spec)
	s := startStore(t, externalConfig(t, spec.Port))
	awaitJoined(t, s)
	const key = "f.v.account.a"
	if got := spend(t, s, key, 1, 4); got != 4 {
		t.Fatalf("got %d of 4 units", got)
	}

	nats.kill()
	began := time.Now()
	await(t, "the node notices", func() bool { return !s.Reachable() && failing(s) != nil })
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("noticed after %v, want 5s at most", took)
	}
	if got := s.Live(); got != 1 {
		t.Errorf("Live = %d while the store is away", got)
	}
	before := s.Clock().Now()
	_, err := s.Exchange(t.Context(), ratelimit.Exchange{
		Key: key, Rates: []counter.Rate{{Units: 10, Period: time.Hour}}, Needs: []ratelimit.Need{{Cost: 1, Count: 1}},
	})
	if !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("exchange without NATS: %v, want ErrUnavailable", err)
	}

	startProcess(t, spec)
	began = time.Now()
	await(t, "the node is back", func() bool { return s.Reachable() && failing(s) == nil })
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("back after %v, want 2s at most", took)
	}
	if s.Clock().Now() < before {
		t.Error("the clock went back")
	}
	if got := spend(t, s, key, 2, 10); got != 6 {
		t.Errorf("got %d units after NATS was killed, want the 6 that were left", got)
	}
}

// One of three external servers goes, the leader of the counters: the node keeps
// its connection or finds another server, and goes on with what was spent.
func TestStore_externalClusterLosesAServer(t *testing.T) {
	bed := newBed(t, 3)
	cfg := externalConfig(t, 1)
	cfg.Replicas = 0 // three, for it is not alone
	var urls []string
	for _, srv := range bed.servers {
		urls = append(urls, srv.ClientURL())
	}
	cfg.URL = strings.Join(urls, ",")
	s := startStore(t, cfg)
	awaitJoined(t, s)
	const key = "f.v.account.a"
	spend(t, s, key, 1, 4)
	st, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if st.Counters != 1 || len(st.Buckets) != 4 || len(st.Buckets[0].Replicas) != 3 {
		t.Errorf("status: %+v", st)
	}

	for _, srv := range bed.servers {
		if srv.Name() == st.Buckets[0].Leader {
			srv.Shutdown()
			srv.WaitForShutdown()
		}
	}
	await(t, "all is well with two servers", func() bool { return s.Reachable() && failing(s) == nil })
	await(t, "the rest is spent, and no more", func() bool {
		g, err := s.Exchange(t.Context(), ratelimit.Exchange{
			Key: key, Rates: []counter.Rate{{Units: 10, Period: time.Hour}},
			Needs: []ratelimit.Need{{Cost: 1, Count: 10}}, Node: "test", Serial: 2,
		})
		return err == nil && g.Units == 6
	})
}
