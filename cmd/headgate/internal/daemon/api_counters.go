package daemon

import (
	"context"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/invocation/admin"
	"github.com/headgate-io/headgate/kvstore"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// counterStore is the store's counters as the admin API wants them.
type counterStore struct{ store *kvstore.Store }

func (s counterStore) Get(ctx context.Context, key ratelimit.Key) (counter.Counter, error) {
	record, err := s.store.Counter(ctx, key)
	if err != nil {
		return counter.Counter{}, translate(err)
	}
	return record.Counter, record.Err
}

// List asks the store for what begins like the pattern and picks what matches.
// Records that cannot be read are left out; Get says why.
func (s counterStore) List(ctx context.Context, pattern string, limit int) ([]admin.StoredCounter, bool, error) {
	tokens := strings.Split(pattern, ".")
	records, total, err := s.store.Counters(ctx, literalPrefix(tokens), kvstore.MaxListed)
	if err != nil {
		return nil, false, err
	}
	list := []admin.StoredCounter{}
	for _, r := range records {
		if r.Err != nil || !matches(tokens, string(r.Key)) {
			continue
		}
		if len(list) == limit {
			return list, true, nil
		}
		list = append(list, admin.StoredCounter{Key: r.Key, State: r.Counter})
	}
	return list, total > len(records), nil
}

// Count is how many counters the store holds.
func (s counterStore) Count(ctx context.Context) (int64, error) {
	st, err := s.store.Status(ctx)
	return int64(st.Counters), err
}

// anyToken stands for every token in a pattern.
const anyToken = "*"

// literalPrefix is the tokens before the first that may be any, each with its
// dot.
func literalPrefix(tokens []string) string {
	n := slices.Index(tokens, anyToken)
	if n < 0 {
		n = len(tokens) - 1 // the last token has no dot after it
	}
	if n == 0 {
		return ""
	}
	return strings.Join(tokens[:n], ".") + "."
}

func matches(pattern []string, key string) bool {
	return slices.EqualFunc(pattern, strings.Split(key, "."), func(p, k string) bool {
		return p == anyToken || p == k
	})
}
