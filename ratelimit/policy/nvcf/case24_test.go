package nvcf

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"

	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf/nvcfapipb"
)

// Case 24, first row: the API fails after a policy was fetched. The last good
// one is enforced and reported stale, whichever way the API fails.
func TestCase24_downAfterFetch(t *testing.T) {
	t.Parallel()
	failures := map[string]behaviour{
		"unavailable":       fails(codes.Unavailable),
		"permission denied": fails(codes.PermissionDenied),
		"internal":          fails(codes.Internal),
		"hanging":           hangs,
	}
	for name, failure := range failures {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAPI(t, "", rate("10-S"))
			s, f := start(t, a.address, func(c *Config) { c.Timeout = 100 * time.Millisecond })
			if n, stale, degraded := units(s); n != 10 || stale || degraded {
				t.Fatalf("fetched: %d, stale %v, degraded %v", n, stale, degraded)
			}
			a.is(failure)
			until(t, "stale", func() bool {
				n, stale, degraded := units(s)
				if n != 10 || degraded {
					t.Fatalf("the last good policy is lost: %d, degraded %v", n, degraded)
				}
				return stale
			})
			wait(t, f.changes, "change to stale")
			if err := wait(t, f.faults, "fault"); strings.Contains(err.Error(), "acme") {
				t.Errorf("the fault repeats what the API said: %v", err)
			}
			a.is(rate("20-S"))
			until(t, "recovered policy", func() bool { n, stale, _ := units(s); return n == 20 && !stale })
			wait(t, f.recovered, "recovery")
			if len(f.faults) > 0 {
				t.Errorf("told again: %v", <-f.faults)
			}
		})
	}
}

// The API's process goes away and comes back; nobody restarts anything.
func TestCase24_processGone(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", rate("10-S"))
	s, f := start(t, a.address)
	units(s)
	a.server.Stop()
	until(t, "stale", func() bool { n, stale, _ := units(s); return n == 10 && stale })
	wait(t, f.faults, "fault")
	startAPI(t, a.address, rate("30-S"))
	until(t, "fresh policy", func() bool { n, stale, _ := units(s); return n == 30 && !stale })
}

// Case 24, second row: down before anything was fetched: admitted, and counted
// as unlimited by failure.
func TestCase24_downBefore(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	s, f := start(t, address, longTTL)
	for range 3 {
		if n, _, degraded := units(s); n != -1 || !degraded {
			t.Fatalf("got %d, degraded %v", n, degraded)
		}
	}
	if got := testutil.ToFloat64(s.metrics.unlimited); got != 3 {
		t.Errorf("counted %v look-ups without a limit, want 3", got)
	}
	if err := wait(t, f.faults, "fault"); !strings.Contains(err.Error(), "refused") {
		t.Error(err)
	}
	startAPI(t, address, rate("10-S"))
	until(t, "policy", func() bool { n, stale, _ := units(s); return n == 10 && !stale })
	wait(t, f.changes, "change")
}

// Case 24, third row: a hanging API makes nobody wait longer than the timeout,
// and nobody twice.
func TestCase24_hanging(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", hangs)
	s, _ := start(t, a.address, longTTL, func(c *Config) { c.Timeout = 200 * time.Millisecond })
	begin := time.Now()
	n, _, degraded := units(s)
	if took := time.Since(begin); n != -1 || !degraded || took < 190*time.Millisecond || took > time.Second {
		t.Errorf("got %d, degraded %v after %s", n, degraded, took)
	}
	begin = time.Now()
	for range 100 {
		units(s)
	}
	if took := time.Since(begin); took > 100*time.Millisecond {
		t.Errorf("100 further look-ups waited %s", took)
	}
}

// Many functions at a hanging API, more than may be asked about at once: each
// waits for the timeout, not for the others.
func TestCase24_hangingForMany(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", hangs)
	s, f := start(t, a.address, longTTL, func(c *Config) { c.Timeout, c.MaxInFlight = 200*time.Millisecond, 2 })
	begin := time.Now()
	var asking sync.WaitGroup
	for i := range 50 {
		asking.Go(func() { s.Ask(context.Background(), fmt.Sprint("f", i), "v") })
	}
	asking.Wait()
	if took := time.Since(begin); took > time.Second {
		t.Errorf("took %s", took)
	}
	if n := len(f.faults); n == 0 || n > 3 {
		t.Errorf("%d faults told for one that hangs", n)
	}
}

// Case 24, fourth row: NOT_FOUND and answers without a limit are unlimited, and
// remembered.
func TestCase24_none(t *testing.T) {
	t.Parallel()
	answers := map[string]behaviour{
		"not found": fails(codes.NotFound),
		"no config": func(context.Context, function) (*nvcfapipb.RateLimitConfig, error) { return nil, nil },
		"no limit": func(context.Context, function) (*nvcfapipb.RateLimitConfig, error) {
			return &nvcfapipb.RateLimitConfig{ExcludedNcaIds: []string{"a"}}, nil
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAPI(t, "", answer)
			s, f := start(t, a.address, longTTL)
			for range 10 {
				if n, _, degraded := units(s); n != -1 || degraded {
					t.Fatalf("got %d, degraded %v", n, degraded)
				}
			}
			if n := a.asked.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
			if len(f.faults) > 0 {
				t.Error(<-f.faults)
			}
		})
	}
}

// Case 24, last row: an unparsable rate leaves the last good policy, and an
// error that names field and function.
func TestCase24_unparsable(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", rate("10-S"))
	s, f := start(t, a.address)
	units(s)
	bad := "20-X"
	a.is(func(context.Context, function) (*nvcfapipb.RateLimitConfig, error) {
		return &nvcfapipb.RateLimitConfig{Rate: new("20-S"), PerNcaIdConfigs: []*nvcfapipb.PerNcaIdConfig{
			{NcaId: "acme", Rate: "1-S"}, {NcaId: "acme", Rate: bad},
		}}, nil
	})
	until(t, "stale", func() bool {
		n, stale, degraded := units(s)
		if n != 10 || degraded {
			t.Fatalf("the last good policy is lost: %d, degraded %v", n, degraded)
		}
		return stale
	})
	err := wait(t, f.faults, "fault")
	want := `function "f" version "v": perNcaIdConfigs[2].rate: rate "20-X": the period after '-' must be one of the letters S, M, H, D`
	var field *FieldFault
	if err.Error() != want || !errors.Is(err, policy.ErrPolicy) || !errors.As(err, &field) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if s.health.isSettled(0) {
		t.Error("settled while the answer cannot be read")
	}
	asked := a.asked.Load()
	until(t, "asked again", func() bool { units(s); return a.asked.Load() >= asked+3 })
	if len(f.faults) > 0 {
		t.Errorf("told again: %v", <-f.faults)
	}
	a.is(rate("20-S"))
	until(t, "recovered policy", func() bool { n, stale, _ := units(s); return n == 20 && !stale })
	wait(t, f.recovered, "recovery")
}
