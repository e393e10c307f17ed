package nvcf

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf/nvcfapipb"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// limits is the API's answer in one line: "10-S; user 2-M; a: 4-S; not b, c".
// Empty is NOT_FOUND.
func limits(text string) behaviour {
	if text == "" {
		return fails(codes.NotFound)
	}
	config := &nvcfapipb.RateLimitConfig{}
	for part := range strings.SplitSeq(text, "; ") {
		account, own, isOwn := strings.Cut(part, ": ")
		user, isUser := strings.CutPrefix(part, "user ")
		excluded, isExcluded := strings.CutPrefix(part, "not ")
		switch {
		case isOwn:
			config.PerNcaIdConfigs = append(config.PerNcaIdConfigs, &nvcfapipb.PerNcaIdConfig{NcaId: account, Rate: own})
		case isUser:
			config.PerUserRate = &user
		case isExcluded:
			config.ExcludedNcaIds = strings.Split(excluded, ", ")
		default:
			config.Rate = &part
		}
	}
	return func(_ context.Context, key function) (*nvcfapipb.RateLimitConfig, error) {
		if key != (function{"f", "v"}) {
			return nil, status.Error(codes.NotFound, "")
		}
		return config, nil
	}
}

// step is what happens next: the clock moves, the API's answer changes, calls
// are made and so many of them allowed.
type step struct {
	after          time.Duration
	change         string // the API's answer from now on
	caller         string // account, or account/subject; "acc%d" is another one for each call
	calls, allowed int
	every          time.Duration // between two calls
	reset          bool          // the caller's counter is reset by an operator first
	there          *int          // what the limiter that this replaces allows, where it is not the same
}

// bench is nodes over one store and one API, in virtual time.
type bench struct {
	api    *api
	set    *policy.Set
	clock  *storetest.Clock
	store  *storetest.Memory
	keys   *ratelimit.Keyring
	nodes  []*ratelimit.Limiter
	serial atomic.Int64
}

func newBench(t *testing.T, answer string, nodes int) *bench {
	t.Helper()
	b := &bench{api: startAPI(t, "", limits(answer)), clock: storetest.NewManualClock(counter.InstantOf(time.Unix(2e9, 0)))}
	cfg := DefaultConfig()
	cfg.Address, cfg.CacheTTL, cfg.Timeout = b.api.address, 100*time.Millisecond, patience
	source, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.set, err = policy.NewSet(policy.DefaultConfig(), []policy.Source{source}, policy.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	if err := source.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.store, b.keys = storetest.NewMemory(b.clock), ratelimit.NewKeyring()
	b.keys.SetSecret([]byte("0123456789abcdef"))
	for i := range nodes {
		cfg := ratelimit.DefaultConfig()
		cfg.Node, cfg.Attempt = fmt.Sprint("node-", i), time.Second
		l, err := ratelimit.New(b.store, b.clock, b.set, b.keys, cfg)
		if err != nil {
			t.Fatal(err)
		}
		b.nodes = append(b.nodes, l)
	}
	t.Cleanup(func() {
		for _, l := range b.nodes {
			if err := l.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}
		if err := source.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// becomes waits until the API's new answer is in force.
func (b *bench) becomes(t *testing.T, answer string) {
	t.Helper()
	config, _ := limits(answer)(t.Context(), function{"f", "v"})
	want, _ := translate(function{"f", "v"}, config, counter.Sliding)
	generation := b.set.Generation()
	b.api.is(limits(answer))
	until(t, "policy in force", func() bool {
		p, _ := b.set.Find(t.Context(), "f", "v")
		same := p == nil && want == nil || p != nil && want != nil && p.Revision == want.Revision && !p.Stale
		return same && b.set.Generation() != generation
	})
}

func (b *bench) invocation(s step) ratelimit.Invocation {
	account, subject, _ := strings.Cut(s.caller, "/")
	if strings.Contains(account, "%d") {
		account = fmt.Sprintf(account, b.serial.Add(1))
	}
	if strings.Contains(subject, "%d") {
		subject = fmt.Sprintf(subject, b.serial.Add(1))
	}
	return ratelimit.Invocation{Account: account, Subject: subject, Function: "f", Version: "v", Cost: 1}
}

func (b *bench) run(t *testing.T, s step) (allowed int) {
	t.Helper()
	b.clock.Advance(s.after)
	if s.change != "" {
		b.becomes(t, s.change)
	}
	if s.reset {
		b.reset(t, s)
	}
	for i := range s.calls {
		b.clock.Advance(s.every)
		d, err := b.nodes[i%len(b.nodes)].Decide(t.Context(), b.invocation(s))
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed() {
			allowed++
		}
	}
	return allowed
}

// reset forgets what the caller has spent, and lets the nodes notice.
func (b *bench) reset(t *testing.T, s step) {
	t.Helper()
	inv := b.invocation(s)
	key, _ := b.keys.Key(ratelimit.Subject, "f", "v", inv.Account, inv.Subject)
	p, _ := b.set.Find(t.Context(), "f", "v")
	if _, err := b.store.Exchange(t.Context(), ratelimit.Exchange{Key: key, Rates: p.Subject, Reset: true}); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(ratelimit.DefaultConfig().SyncInterval)
	inv.Cost = 0 // a look, which reads the counter when what the node knows is old
	for _, l := range b.nodes {
		until(t, "the node noticed", func() bool {
			d, err := l.Decide(t.Context(), inv)
			return err == nil && d.Allowed()
		})
	}
}
