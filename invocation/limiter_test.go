package invocation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate-io/headgate/invocation"
	"github.com/headgate-io/headgate/invocation/nvcfpb"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

// policies is a finder over one document, which never changes.
type policies map[string]*ratelimit.Policy

func (p policies) Find(_ context.Context, function, _ string) (*ratelimit.Policy, bool) {
	return p[function], false
}

func (policies) Generation() uint64 { return 1 }

// limiterGate is an open gate before a real limiter over a store in memory.
func limiterGate(t *testing.T, document string, opts ...invocation.Option) (*invocation.Gate, *storetest.Memory) {
	t.Helper()
	parsed, _, err := policy.Parse([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	finder := policies{}
	for _, p := range parsed {
		finder[p.Function] = p
	}
	clock := storetest.NewClock()
	store := storetest.NewMemory(clock)
	keys := ratelimit.NewKeyring()
	keys.SetSecret([]byte("a secret of the tests"))
	cfg := ratelimit.DefaultConfig()
	cfg.Node = "node"
	l, err := ratelimit.New(store, clock, finder, keys, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := l.Stop(ctx); err != nil {
			t.Errorf("stop limiter: %v", err)
		}
	})
	return openGate(t, l, opts...), store
}

func checkBody(account, subject string, cost int) string {
	return fmt.Sprintf(`{"account":%q,"function":"resize","version":"v1","subject":%q,"cost":%d}`, account, subject, cost)
}

func checked(t *testing.T, g *invocation.Gate, body string) (invocation.Answer, http.Header) {
	t.Helper()
	resp := post(t, g, body)
	var a invocation.Answer
	if err := json.Unmarshal([]byte(text(t, resp)), &a); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%d: %v", resp.StatusCode, err)
	}
	return a, resp.Header
}

// Case 9 of the cases: what the subject's tier denies is not charged to the
// account.
func TestTiersOverTheNVCFWire(t *testing.T) {
	g, _ := limiterGate(t, `{function: resize, account: {rates: 10-M}, subject: {rates: 3-M}}`)
	_, conn := serveGRPC(t, g)
	client := nvcfpb.NewRateLimitServiceClient(conn)
	admitted := func(subject func(int) string) (n int) {
		for i := range 8 {
			resp, err := client.RateLimit(t.Context(), &nvcfpb.RateLimitRequest{
				NcaId: "acme", FunctionId: "resize", FunctionVersionId: "v1", ClientAuthSubject: subject(i),
			})
			if err != nil {
				t.Fatal(err)
			}
			if resp.GetResult() == nvcfpb.Result_ALLOW {
				n++
			}
		}
		return n
	}
	if n := admitted(func(int) string { return "a" }); n != 3 {
		t.Fatalf("%d of A's calls admitted, want 3", n)
	}
	if n := admitted(func(i int) string { return fmt.Sprint("other", i) }); n != 7 {
		t.Fatalf("%d of the others' calls admitted, want 7", n)
	}
}

func TestFirstSessionOverHTTP(t *testing.T) {
	g, _ := limiterGate(t, `{function: resize, account: {rates: 3-H}, consistency: exact}`)
	for i, want := range []int64{2, 1, 0} {
		a, h := checked(t, g, checkBody("acme", "", 1))
		if !a.Allowed || a.Remaining == nil || *a.Remaining != want || a.Mode != "exact" {
			t.Fatalf("check %d: %+v, want %d remaining", i, a, want)
		}
		if got := h.Get("RateLimit-Policy"); got != `"account";q=3;w=3600` {
			t.Fatalf("RateLimit-Policy: %s", got)
		}
		if got := h.Get("RateLimit"); !strings.HasPrefix(got, fmt.Sprintf(`"account";r=%d;t=`, want)) {
			t.Fatalf("RateLimit: %s, want r=%d", got, want)
		}
	}
	for _, cost := range []int{1, 0} {
		a, h := checked(t, g, checkBody("acme", "", cost))
		if a.Allowed || *a.LimitedBy != (invocation.LimitedBy{Tier: "account", Rate: "3-H"}) || *a.RetryAfter <= 0 {
			t.Fatalf("denied at cost %d: %+v", cost, a)
		}
		if h.Get("Retry-After") == "" {
			t.Fatal("a denial without Retry-After")
		}
	}
	if a, h := checked(t, g, checkBody("other", "", 4)); a.Outcome != "impossible" || h.Get("Retry-After") != "" {
		t.Fatalf("above the limit's capacity: %+v, Retry-After %q", a, h.Get("Retry-After"))
	}
	if a, _ := checked(t, g, checkBody("other", "", 3)); !a.Allowed {
		t.Fatalf("another account, and the impossible was not charged: %+v", a)
	}
}

// Looking charges nothing, however often.
func TestLooksAreFree(t *testing.T) {
	g, store := limiterGate(t, `{function: resize, account: {rates: 3-H}}`)
	for range 5 {
		if a, _ := checked(t, g, checkBody("acme", "", 0)); !a.Allowed || *a.Remaining != 3 {
			t.Fatalf("look: %+v", a)
		}
	}
	for _, key := range store.Keys() {
		if state := store.State(key); !state.Empty() {
			t.Fatalf("%s was charged by looks: %+v", key, state)
		}
	}
}

// Only a policy knows whether an account is needed; the field is named as the
// wire names it.
func TestAnAccountIsNeededWhereALimitCountsByIt(t *testing.T) {
	g, _ := limiterGate(t, "{function: resize, account: {rates: 3-H}}\n---\n{function: whole, total: {rates: 3-H}}\n")
	resp := post(t, g, `{"function":"resize"}`)
	if got := problem(t, resp); resp.StatusCode != http.StatusBadRequest || got.Field != "account" {
		t.Fatalf("%d %+v, want 400 of account", resp.StatusCode, got)
	}
	if a, _ := checked(t, g, `{"function":"whole"}`); !a.Allowed || *a.Remaining != 2 {
		t.Fatalf("the whole function: %+v", a)
	}
	_, conn := serveGRPC(t, g)
	_, err := nvcfpb.NewRateLimitServiceClient(conn).RateLimit(t.Context(), &nvcfpb.RateLimitRequest{
		FunctionId: "whole", FunctionVersionId: "v1",
	})
	if st := status.Convert(err); st.Code() != codes.InvalidArgument || !strings.HasPrefix(st.Message(), "ncaId: ") {
		t.Fatalf("this wire has always required it: %v", err)
	}
}

// The store is away: an answer all the same, marked as what it is.
func TestDegradedAnswers(t *testing.T) {
	g, store := limiterGate(t, "{function: resize, account: {rates: 100-H}, onStoreFailure: allow}\n"+
		"---\n{function: shut, account: {rates: 100-H}, onStoreFailure: deny}\n")
	store.SetAway(storetest.Refusing)
	if a, _ := checked(t, g, checkBody("acme", "", 1)); !a.Allowed || !a.Degraded {
		t.Fatalf("allow: %+v", a)
	}
	_, conn := serveGRPC(t, g)
	resp, err := nvcfpb.NewRateLimitServiceClient(conn).RateLimit(t.Context(), &nvcfpb.RateLimitRequest{
		NcaId: "acme", FunctionId: "shut", FunctionVersionId: "v1",
	})
	if err != nil || resp.GetResult() != nvcfpb.Result_DISALLOW {
		t.Fatalf("deny: %v, %v; want OK and DISALLOW", resp, err)
	}
	store.SetAway(storetest.Here)
}

// Case 12 in small: every front door spends from the same counters.
func TestAllDoorsSpendFromOneBudget(t *testing.T) {
	const limit, workers, each = 100, 8, 50
	g, _ := limiterGate(t, fmt.Sprintf(`{function: resize, account: {rates: %d-H}}`, limit))
	_, conn := serveGRPC(t, g)
	client := nvcfpb.NewRateLimitServiceClient(conn)
	overGRPC := func() bool {
		resp, err := client.RateLimit(t.Context(), &nvcfpb.RateLimitRequest{
			NcaId: "acme", FunctionId: "resize", FunctionVersionId: "v1",
		})
		if err != nil {
			t.Error(err)
		}
		return err == nil && resp.GetResult() == nvcfpb.Result_ALLOW
	}
	overHTTP := func() bool {
		resp := post(t, g, checkBody("acme", "", 1))
		return strings.HasPrefix(text(t, resp), `{"allowed":true`)
	}
	var admitted atomic.Int64
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			for range each {
				if w%2 == 0 && overGRPC() || w%2 == 1 && overHTTP() {
					admitted.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := admitted.Load(); n != limit {
		t.Fatalf("%d admitted, want exactly %d", n, limit)
	}
}
