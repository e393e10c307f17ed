package kvstore

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/headgate-io/headgate/ratelimit"
)

// Every node but the asking one is asked; one that does not answer is named.
func TestStore_askPeers(t *testing.T) {
	t.Parallel()
	stores := startStores(t, memberConfigs(t))
	awaitJoined(t, stores...)
	for _, s := range stores {
		await(t, "the others", func() bool { return len(s.nodes.members.others()) == len(stores)-1 })
	}
	asked := stores[0]
	var stops []func()
	for _, s := range stores[1:] {
		stop, err := s.servePeers(func(_ context.Context, request []byte) []byte {
			return append([]byte(s.cfg.NodeName+" heard "), request...)
		})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		stops = append(stops, stop)
	}
	var (
		answers map[string][]byte
		silent  []string
		err     error
	)
	await(t, "servers that know who listens where", func() bool {
		answers, silent, err = asked.askPeers(t.Context(), []byte("this"))
		return err == nil && len(silent) == 0
	})
	if len(answers) != 2 {
		t.Fatalf("answers %q", answers)
	}
	for _, s := range stores[1:] {
		if got := string(answers[s.cfg.NodeName]); got != s.cfg.NodeName+" heard this" {
			t.Errorf("%s answers %q", s.cfg.NodeName, got)
		}
	}

	stops[0]()
	answers, silent, err = asked.askPeers(t.Context(), []byte("again"))
	if err != nil || !slices.Equal(silent, []string{stores[1].cfg.NodeName}) {
		t.Errorf("silent %q, error %v, want %s", silent, err, stores[1].cfg.NodeName)
	}
	if len(answers) != 1 {
		t.Errorf("answers %q, want the one of the other node", answers)
	}
}

func TestStore_askPeersBeforeJoining(t *testing.T) {
	t.Parallel()
	s, err := New(testConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.askPeers(t.Context(), nil); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("askPeers: %v", err)
	}
	if _, err := s.servePeers(nil); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("servePeers: %v", err)
	}
}
