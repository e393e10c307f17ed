package policy_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// node is a limiter with the policies of a file, over a store that others use.
// It logs to log.
func node(t *testing.T, name, path string, store ratelimit.Store, clock ratelimit.Clock, log io.Writer) (*ratelimit.Limiter, *policy.Set) {
	t.Helper()
	cfg := policy.DefaultConfig()
	cfg.Path = path
	file, err := policy.NewFileSource(cfg)
	if err != nil {
		t.Fatal(err)
	}
	set, err := policy.NewSet(cfg, []policy.Source{file}, policy.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	keys := ratelimit.NewKeyring()
	keys.SetSecret([]byte("0123456789abcdef"))
	limits := ratelimit.DefaultConfig()
	limits.Node, limits.Attempt = name, time.Second
	l, err := ratelimit.New(store, clock, set, keys, limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		if err := file.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return l, set
}

// faults is a log that tells of the lines about faults.
type faults chan string

func (f faults) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "has a fault") {
		f <- string(line)
	}
	return len(line), nil
}

// Case 21: 100-M is lowered to 20-M after 50 are spent, then an invalid policy
// is written.
func TestCase21_loweredThenInvalid(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write := func(rate string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("function: f\naccount: {rates: "+rate+"}\nconsistency: exact\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("100-M")
	clock := storetest.NewManualClock(counter.InstantOf(time.Unix(2e9, 0)))
	store := storetest.NewMemory(clock)
	told := make(faults, 100)
	var nodes []*ratelimit.Limiter
	var sets []*policy.Set
	for i := range 3 {
		l, set := node(t, fmt.Sprint("node-", i), path, store, clock, told)
		nodes, sets = append(nodes, l), append(sets, set)
	}
	decide := func(l *ratelimit.Limiter) ratelimit.Decision {
		t.Helper()
		d, err := l.Decide(t.Context(), ratelimit.Invocation{Account: "a", Function: "f", Version: "v", Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for i := range 50 {
		if !decide(nodes[i%3]).Allowed() {
			t.Fatalf("call %d was denied", i)
		}
	}

	write("20-M")
	inForce := func(set *policy.Set) bool {
		p, _ := set.Find(t.Context(), "f", "v")
		return p.Account[0].Units == 20
	}
	changed := time.Now()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !inForce(sets[0]) || !inForce(sets[1]) || !inForce(sets[2]) {
		if <-tick.C; time.Since(changed) > 2*time.Second {
			t.Fatal("not in force on every node within 2 s")
		}
	}
	t.Logf("in force on every node after %s", time.Since(changed))
	lowered := func(when string) {
		t.Helper()
		for i, l := range nodes {
			if d := decide(l); d.Allowed() || d.Remaining != 0 || d.Rate.Units != 20 {
				t.Errorf("%s, node %d: %+v", when, i, d)
			}
		}
	}
	lowered("lowered")

	write("20-X")
	for range nodes {
		select {
		case line := <-told:
			if !strings.Contains(line, "20-X") || !strings.Contains(line, "account.rates") {
				t.Errorf("the fault is not named: %s", line)
			}
		case <-time.After(2 * time.Second):
			t.Fatal("the fault was not told")
		}
	}
	lowered("invalid")
	clock.Advance(2 * time.Minute)
	for i, l := range nodes {
		if d := decide(l); !d.Allowed() || d.Policy.Account[0].Units != 20 {
			t.Errorf("a fresh minute, node %d: %+v", i, d)
		}
	}
}
