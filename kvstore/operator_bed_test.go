package kvstore

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// operated is a node with an operator in a test.
type operated struct {
	*Operator
	store  *Store
	holder Holder
}

// externalStores are joined stores over one server, that know one another.
func externalStores(t *testing.T, n int) []*Store {
	t.Helper()
	at, err := url.Parse(startServer(t, 0, make([]int, 1)).ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(at.Port())
	if err != nil {
		t.Fatal(err)
	}
	var stores []*Store
	for i := range n {
		cfg := externalConfig(t, port)
		cfg.NodeName = fmt.Sprintf("node-%d", i)
		stores = append(stores, startStore(t, cfg))
	}
	awaitJoined(t, stores...)
	for _, s := range stores {
		await(t, "the others", func() bool { return len(s.nodes.members.others()) == n-1 })
	}
	return stores
}

// operate gives every store an operator over the holder that make returns.
func operate[H Holder](t *testing.T, stores []*Store, holder func(i int) H) []operated {
	t.Helper()
	var all []operated
	for i, s := range stores {
		h := holder(i)
		o := NewOperator(s, h)
		if err := o.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = o.Stop(context.Background()) }) // it has no error
		all = append(all, operated{o, s, h})
	}
	for _, n := range all {
		await(t, "servers that know who listens where", func() bool {
			_, silent, err := n.Leases(t.Context(), "f.v.account.none")
			return err == nil && len(silent) == 0
		})
	}
	return all
}

// holder is a node without a limiter. The zero holder settles at once.
type holder struct {
	holding atomic.Int64
	lasted  atomic.Int64 // nanoseconds that the last hold took
	refuses atomic.Pointer[error]
	units   atomic.Int64
	until   atomic.Int64
}

func (h *holder) Hold(context.Context, ratelimit.Key) (func(), error) {
	if err := h.refuses.Load(); err != nil {
		return nil, *err
	}
	h.holding.Add(1)
	since := time.Now()
	return func() {
		h.lasted.Store(int64(time.Since(since)))
		h.holding.Add(-1)
	}, nil
}

func (h *holder) Leased(ratelimit.Key) (int64, counter.Instant) {
	return h.units.Load(), counter.Instant(h.until.Load())
}
