package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the API over a store in memory. Its clock stands still.
type world struct {
	mux      *http.ServeMux
	book     *book
	store    *storetest.Memory
	clock    *storetest.Clock
	keys     *ratelimit.Keyring
	leases   admin.Leases
	status   admin.Status
	failure  error // of every part, when set
	serial   uint64
	document *document
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		mux: http.NewServeMux(), keys: ratelimit.NewKeyring(), document: readDocument(t),
		clock: storetest.NewManualClock(counter.InstantOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))),
	}
	w.book = &book{world: w, stored: map[scope]*ratelimit.Policy{}}
	w.store = storetest.NewMemory(w.clock)
	w.keys.SetSecret([]byte("a secret of the tests"))
	if err := admin.Register(w.mux, w.parts(), nil); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) parts() admin.Parts {
	return admin.Parts{
		Policies: w.book, View: w.book, Counters: counters{w}, Operator: operator{w},
		Keys: w.keys, Clock: w.clock,
		Status: func(context.Context) (admin.Status, error) { return w.status, w.failure },
	}
}

// charge spends units of one counter, as a node would.
func (w *world) charge(t *testing.T, key ratelimit.Key, rates string, units int64) {
	t.Helper()
	parsed, err := counter.ParseRates(rates)
	if err != nil {
		t.Fatal(err)
	}
	w.serial++
	g, err := w.store.Exchange(t.Context(), ratelimit.Exchange{
		Key: key, Rates: parsed, Needs: []ratelimit.Need{{Cost: units, Count: 1}}, Node: "node", Serial: w.serial,
	})
	if err != nil || g.Units != units {
		t.Fatalf("charge %d: granted %d, %v", units, g.Units, err)
	}
}

func (w *world) key(t *testing.T, tier ratelimit.Tier, version, account, subject string) ratelimit.Key {
	t.Helper()
	key, ok := w.keys.Key(tier, "resize", version, account, subject)
	if !ok {
		t.Fatal("no secret")
	}
	return key
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends one request and holds the answer to the API's document.
func (w *world) ask(t *testing.T, method, target, body string) answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	rec := httptest.NewRecorder()
	w.mux.ServeHTTP(rec, r)
	data, err := io.ReadAll(rec.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{status: rec.Code, header: rec.Header(), body: strings.TrimSpace(string(data))}
	w.document.holds(t, r.Method, r.Pattern, a)
	return a
}

type scope struct{ function, version string }

// book is a store of policies, and the view of it: what it holds, after what a
// file holds.
type book struct {
	world *world
	mu    sync.Mutex

	file     []*ratelimit.Policy
	stored   map[scope]*ratelimit.Policy
	broken   map[scope]error // what cannot be read
	revision uint64
}

func (b *book) Get(_ context.Context, function, version string) (*ratelimit.Policy, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.get(scope{function, version})
}

func (b *book) get(s scope) (*ratelimit.Policy, error) {
	if b.world.failure != nil {
		return nil, b.world.failure
	}
	if err := b.broken[s]; err != nil {
		return nil, err
	}
	if p := b.stored[s]; p != nil {
		return p, nil
	}
	return nil, admin.ErrNotFound
}

func (b *book) revisionOf(s scope) (uint64, error) {
	p, err := b.get(s)
	if errors.Is(err, admin.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(p.Revision, 10, 64)
}

func (b *book) Apply(_ context.Context, p *ratelimit.Policy) (uint64, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.write(p), true, b.world.failure
}

func (b *book) Put(_ context.Context, p *ratelimit.Policy, expected uint64) (uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, err := b.revisionOf(scope{p.Function, p.Version})
	if err != nil {
		return 0, err
	}
	if at != expected {
		return 0, &admin.ConflictError{Current: at}
	}
	return b.write(p), nil
}

func (b *book) write(p *ratelimit.Policy) uint64 {
	b.revision++
	kept, s := *p, scope{p.Function, p.Version}
	kept.Source, kept.Revision = policy.Bucket, strconv.FormatUint(b.revision, 10)
	b.stored[s] = &kept
	delete(b.broken, s)
	return b.revision
}

func (b *book) Delete(_ context.Context, function, version string, expected uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, err := b.revisionOf(scope{function, version})
	switch {
	case err != nil:
		return err
	case at == 0:
		return admin.ErrNotFound
	case expected != 0 && expected != at:
		return &admin.ConflictError{Current: at}
	}
	delete(b.stored, scope{function, version})
	return nil
}

func (b *book) Policies() []*ratelimit.Policy {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := slices.Clone(b.file)
	for _, p := range b.stored {
		all = append(all, p)
	}
	slices.SortStableFunc(all[len(b.file):], func(x, y *ratelimit.Policy) int {
		return strings.Compare(x.Function+"."+x.Version, y.Function+"."+y.Version)
	})
	return all
}

func (b *book) Find(_ context.Context, function, version string) (*ratelimit.Policy, bool) {
	all := b.Policies()
	for _, s := range []scope{{function, version}, {function, ratelimit.Any}, {ratelimit.Any, ratelimit.Any}} {
		for _, p := range all {
			if p.Function == s.function && p.Version == s.version {
				return p, false
			}
		}
	}
	return nil, false
}

func (b *book) Generation() uint64 { return 1 }

// counters reads the store in memory.
type counters struct{ w *world }

func (c counters) Get(_ context.Context, key ratelimit.Key) (counter.Counter, error) {
	if c.w.failure != nil {
		return counter.Counter{}, c.w.failure
	}
	if !slices.Contains(c.w.store.Keys(), key) {
		return counter.Counter{}, admin.ErrNotFound
	}
	return c.w.store.State(key), nil
}

func (c counters) List(_ context.Context, pattern string, limit int) (list []admin.StoredCounter, more bool, err error) {
	if c.w.failure != nil {
		return nil, false, c.w.failure
	}
	// A token of a key may hold a slash, which path.Match treats apart.
	plain := func(s string) string { return strings.NewReplacer("/", "!", ".", "/").Replace(s) }
	for _, key := range c.w.store.Keys() {
		if ok, err := path.Match(plain(pattern), plain(string(key))); err != nil || !ok {
			continue
		}
		if len(list) == limit {
			return list, true, nil
		}
		list = append(list, admin.StoredCounter{Key: key, State: c.w.store.State(key)})
	}
	return list, false, nil
}

// operator resets and grants in the store in memory; leases are as the world
// says, until they are revoked.
type operator struct{ w *world }

func (o operator) Reset(ctx context.Context, key ratelimit.Key, rates []counter.Rate) error {
	o.w.leases.Held = nil
	return o.exchange(ctx, ratelimit.Exchange{Key: key, Rates: rates, Reset: true})
}

func (o operator) Grant(ctx context.Context, key ratelimit.Key, rates []counter.Rate, units int64) error {
	return o.exchange(ctx, ratelimit.Exchange{Key: key, Rates: rates, Add: units})
}

func (o operator) exchange(ctx context.Context, x ratelimit.Exchange) error {
	if o.w.failure != nil {
		return o.w.failure
	}
	o.w.serial++
	x.Node, x.Serial = "operator", o.w.serial
	_, err := o.w.store.Exchange(ctx, x)
	return err
}

func (o operator) Leases(context.Context, ratelimit.Key) (admin.Leases, error) {
	return o.w.leases, o.w.failure
}
