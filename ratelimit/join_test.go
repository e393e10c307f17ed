package ratelimit_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// membership is a store that a test joins.
type membership struct {
	joined chan struct{}
	err    error
}

func (m membership) Joined() <-chan struct{} { return m.joined }
func (m membership) KeySecret(context.Context) ([]byte, error) {
	return []byte("0123456789abcdef"), m.err
}

// companion tells what was done with it.
type companion struct{ told []string }

func (c *companion) Start(context.Context) error { c.told = append(c.told, "start"); return nil }
func (c *companion) Stop(context.Context) error  { c.told = append(c.told, "stop"); return nil }

// joining is a limiter behind a joiner, in a bubble.
func joining(t *testing.T, m membership, c ratelimit.Companion) (*ratelimit.Joiner, *ratelimit.Limiter, *ratelimit.Keyring) {
	t.Helper()
	clock, keys := storetest.NewClock(), ratelimit.NewKeyring()
	cfg := ratelimit.DefaultConfig()
	cfg.Node = "node"
	l, err := ratelimit.New(storetest.NewMemory(clock), clock, finderOf(), keys, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return ratelimit.NewJoiner(m, keys, l, nil, c), l, keys
}

// The limiter runs, with its secret and its companions, once the store is
// joined, and not before.
func TestJoiner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := membership{joined: make(chan struct{})}, &companion{}
		j, l, keys := joining(t, m, c)
		if err := j.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := j.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "waiting for the store") {
			t.Errorf("before the store is joined: %v", err)
		}
		if _, ok := keys.Key(ratelimit.Subject, "f", "v", "a", "s"); ok || len(c.told) > 0 {
			t.Errorf("before the store is joined: a key of a subject %v, companion %v", ok, c.told)
		}
		close(m.joined)
		synctest.Wait()
		if err := j.Check(t.Context()); err != nil {
			t.Error(err)
		}
		if _, ok := keys.Key(ratelimit.Subject, "f", "v", "a", "s"); !ok {
			t.Error("the keyring has no secret")
		}
		for range 2 {
			if err := errors.Join(l.Stop(t.Context()), j.Stop(t.Context())); err != nil {
				t.Error(err)
			}
		}
		if want := []string{"start", "stop", "stop"}; !slices.Equal(c.told, want) {
			t.Errorf("companion: %v, want %v", c.told, want)
		}
	})
}

// A joiner that gives up starts nothing any more, and one that fails says why.
func TestJoiner_doesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, c := membership{joined: make(chan struct{})}, &companion{}
		j, _, _ := joining(t, m, c)
		j.GiveUp()
		if err := j.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		j.GiveUp()
		close(m.joined)
		synctest.Wait()
		if j.Check(t.Context()) == nil || len(c.told) > 0 {
			t.Errorf("started after it gave up: %v", c.told)
		}

		broken := errors.New("no secret to be had")
		j, _, _ = joining(t, membership{joined: m.joined, err: broken}, c)
		if err := j.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if err := j.Check(t.Context()); !errors.Is(err, broken) || len(c.told) > 0 {
			t.Errorf("without a secret: %v, companion %v", err, c.told)
		}
	})
}
