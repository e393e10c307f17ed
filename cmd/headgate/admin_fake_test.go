package main

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// noon is when everything in a fake world happens.
var noon = counter.InstantOf(time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC))

// world is the real admin API over a store of policies and counters in memory.
type world struct {
	mu       sync.Mutex
	policies map[[2]string]*ratelimit.Policy
	serial   uint64
	counters map[ratelimit.Key]counter.Counter
	keys     *ratelimit.Keyring
	leases   []admin.Lease
	silent   []string
}

// newWorld serves one and returns the environment in which commands ask it.
func newWorld(t *testing.T) (*world, []string) {
	t.Helper()
	w := &world{
		policies: map[[2]string]*ratelimit.Policy{}, counters: map[ratelimit.Key]counter.Counter{},
		keys: ratelimit.NewKeyring(),
	}
	w.keys.SetSecret([]byte("0123456789abcdef"))
	mux := http.NewServeMux()
	err := admin.Register(mux, admin.Parts{
		Policies: w, View: w, Counters: counters{w}, Operator: w, Keys: w.keys, Clock: w, Status: w.status,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return w, []string{"HEADGATE_SERVER=" + s.URL}
}

func (w *world) Now() counter.Instant { return noon }
func (w *world) Error() time.Duration { return 0 }
func (w *world) Generation() uint64   { return 0 }

func (w *world) Find(_ context.Context, function, version string) (*ratelimit.Policy, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range [][2]string{{function, version}, {function, ratelimit.Any}, {ratelimit.Any, ratelimit.Any}} {
		if p := w.policies[name]; p != nil {
			return p, false
		}
	}
	return nil, false
}

func (w *world) Policies() []*ratelimit.Policy {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Values(w.policies), func(a, b *ratelimit.Policy) int {
		return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Version, b.Version))
	})
}

func (w *world) Get(_ context.Context, function, version string) (*ratelimit.Policy, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.policies[[2]string{function, version}]; p != nil {
		return p, nil
	}
	return nil, admin.ErrNotFound
}

func (w *world) Apply(ctx context.Context, p *ratelimit.Policy) (uint64, bool, error) {
	at := uint64(0)
	if old, err := w.Get(ctx, p.Function, p.Version); err == nil {
		at, _ = strconv.ParseUint(old.Revision, 10, 64) // Put wrote it
	}
	revision, err := w.Put(ctx, p, at)
	return revision, err == nil, err
}

func (w *world) Put(_ context.Context, p *ratelimit.Policy, expected uint64) (uint64, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := [2]string{p.Function, p.Version}
	at := uint64(0)
	if old := w.policies[name]; old != nil {
		at, _ = strconv.ParseUint(old.Revision, 10, 64) // Put wrote it
	}
	if at != expected {
		return 0, &admin.ConflictError{Current: at}
	}
	w.serial++
	p.Source, p.Revision = policy.Bucket, strconv.FormatUint(w.serial, 10)
	w.policies[name] = p
	return w.serial, nil
}

func (w *world) Delete(_ context.Context, function, version string, expected uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := [2]string{function, version}
	old := w.policies[name]
	switch {
	case old == nil:
		return admin.ErrNotFound
	case expected != 0 && old.Revision != strconv.FormatUint(expected, 10):
		return admin.ErrConflict
	}
	delete(w.policies, name)
	return nil
}

// counters is the counters of a world.
type counters struct{ *world }

func (c counters) Get(_ context.Context, key ratelimit.Key) (counter.Counter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, ok := c.counters[key]
	if !ok {
		return counter.Counter{}, admin.ErrNotFound
	}
	return state, nil
}

func (c counters) List(_ context.Context, pattern string, limit int) ([]admin.StoredCounter, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []admin.StoredCounter
	for _, key := range slices.Sorted(maps.Keys(c.counters)) {
		if !matches(pattern, string(key)) {
			continue
		}
		if len(list) == limit {
			return list, true, nil
		}
		list = append(list, admin.StoredCounter{Key: key, State: c.counters[key]})
	}
	return list, false, nil
}

func (c counters) Count(context.Context) (int64, error) { return int64(len(c.counters)), nil }

// matches reports whether a key is like a pattern, whose "*" is any one token.
func matches(pattern, key string) bool {
	return slices.EqualFunc(strings.Split(pattern, "."), strings.Split(key, "."), func(p, k string) bool {
		return p == "*" || p == k
	})
}

// charge spends units of an account.
func (w *world) charge(function, account string, units int64, rates ...counter.Rate) ratelimit.Key {
	key, _ := w.keys.Key(ratelimit.Account, function, ratelimit.Any, account, "")
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.counters[key].Clone()
	state.Charge(rates, units, noon, noon)
	w.counters[key] = state
	return key
}

func (w *world) Reset(_ context.Context, key ratelimit.Key, _ []counter.Rate) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.counters, key)
	w.leases = nil
	return nil
}

func (w *world) Grant(_ context.Context, key ratelimit.Key, rates []counter.Rate, units int64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.counters[key].Clone()
	state.Credit(rates, units, noon)
	w.counters[key] = state
	return nil
}

// lease says which leases there are, and which nodes do not say.
func (w *world) lease(silent []string, held ...admin.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leases, w.silent = held, silent
}

func (w *world) Leases(context.Context, ratelimit.Key) (admin.Leases, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return admin.Leases{Held: w.leases, Silent: w.silent}, nil
}

func (w *world) status(context.Context) (admin.Status, error) {
	counters := int64(12)
	return admin.Status{
		Node: "n1", Phase: "ready", Version: "v1.2.3", Ready: true, Policies: 2, Counters: &counters,
		Nodes: []admin.Node{
			{Name: "n1", Phase: "ready", Version: "v1.2.3", Uptime: 3600, Offset: 0.0012, Alive: true},
			{Name: "n2", Phase: "draining", Version: "v1.2.2", Uptime: 12.5, Offset: -0.5, Alive: true},
			{Name: "n3", Phase: "ready", Version: "v1.2.2", Uptime: 60, Silent: 12.5},
		},
		Buckets: []admin.Bucket{{Name: "headgate_counters", Leader: "n1", Records: 12, Bytes: 1024, Replicas: []admin.Replica{
			{Name: "n1", Current: true}, {Name: "n2", Lag: 3}, {Name: "n3", Offline: true},
		}}},
	}, nil
}
