package kvstore

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/test/ports"
)

// A store stops in good order at whatever point of its start, and a second Stop
// does nothing.
func TestStore_stopsWhileItStarts(t *testing.T) {
	shapes := map[string]func(t *testing.T) Config{
		"alone":    func(t *testing.T) Config { return testConfig(t) },
		"member":   func(t *testing.T) Config { return memberConfigs(t)[0] }, // the others never come
		"external": func(t *testing.T) Config { return externalConfig(t, ports.Free(t, 1)[0]) },
	}
	for name, config := range shapes {
		for _, after := range []time.Duration{0, 5 * time.Millisecond, 100 * time.Millisecond} {
			t.Run(name+"/"+after.String(), func(t *testing.T) {
				s := startStore(t, config(t))
				<-time.After(after) // any moment will do
				began := time.Now()
				stopStore(t, s)
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("Stop took %v", took)
				}
				stopStore(t, s)
				if err := s.Start(t.Context()); !errors.Is(err, ErrStarted) {
					t.Errorf("Start after Stop: %v, want ErrStarted", err)
				}
			})
		}
	}
}

// A node that leaves says good-bye: the others do not wait for it to fall
// silent. One that drains is no owner any more, and counts.
func TestStore_leavesAndDrains(t *testing.T) {
	spec := serverSpec{Port: ports.Free(t, 1)[0], StoreDir: t.TempDir()}
	startProcess(t, spec)
	start := func(name string) *Store {
		cfg := externalConfig(t, spec.Port)
		cfg.NodeName = name
		cfg.NodeTTL = time.Hour // silence alone removes nobody here
		return startStore(t, cfg)
	}
	a, b, c := start("a"), start("b"), start("c")
	awaitJoined(t, a, b, c)
	await(t, "a knows three owners", func() bool { return len(a.nodes.members.Live()) == 3 })

	b.SetPhase(PhaseDraining)
	await(t, "b is no owner", func() bool { return strings.Join(a.nodes.members.Live(), " ") == "a c" })
	if got := a.Live(); got != 3 {
		t.Errorf("Live = %d while b drains, want 3", got)
	}
	stopStore(t, b)
	await(t, "b is gone", func() bool { return a.Live() == 2 && c.Live() == 2 })
	if _, err := b.Exchange(t.Context(), ratelimit.Exchange{Key: "f.v.account.a"}); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("exchange after Stop: %v, want ErrUnavailable", err)
	}
	st, err := a.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(st.Nodes) != 2 || st.Nodes[0].Name != "a" || !st.Nodes[0].Alive || st.Nodes[0].Uptime <= 0 {
		t.Errorf("status: %+v", st.Nodes)
	}
}

// logBuffer is a log that several goroutines write to.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Two processes under one name are told so. No secret reaches the log at its
// most talkative level.
func TestStore_logsTwinsAndNoSecrets(t *testing.T) {
	var log logBuffer
	logger := WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	cfgs := memberConfigs(t)
	for i := range cfgs {
		cfgs[i].Secret = "hunter2-hunter2-hunter2"
		cfgs[i].Cluster.User, cfgs[i].Cluster.Password = "member", "hunter2"
	}
	var members []*Store
	for _, cfg := range cfgs {
		members = append(members, startStore(t, cfg, logger))
	}
	awaitJoined(t, members...)
	token := members[0].server.token
	spend(t, members[0], "f.v.account.acme-account", 1, 4)

	spec := serverSpec{Port: ports.Free(t, 1)[0], StoreDir: t.TempDir()}
	startProcess(t, spec)
	cfg := externalConfig(t, spec.Port)
	cfg.Secret = "hunter2-hunter2-hunter2"
	first, second := startStore(t, cfg, logger), startStore(t, cfg, logger)
	awaitJoined(t, first, second)
	await(t, "the twins are told", func() bool { return strings.Contains(log.String(), "names must be unique") })
	for _, s := range append(members, first, second) {
		stopStore(t, s)
	}
	for _, never := range []string{"hunter2", "acme-account", token} {
		if strings.Contains(log.String(), never) {
			t.Errorf("the log shows %q", never)
		}
	}
}
