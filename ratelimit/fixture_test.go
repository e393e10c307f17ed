package ratelimit_test

import (
	"context"
	"sync/atomic"

	"github.com/headgate-io/headgate/ratelimit"
)

// finder is a fixed set of policies that a test may replace.
type finder struct {
	policies   atomic.Pointer[map[[2]string]*ratelimit.Policy]
	generation atomic.Uint64
}

func finderOf(policies ...*ratelimit.Policy) *finder {
	f := &finder{}
	f.set(policies...)
	return f
}

// set replaces the policies.
func (f *finder) set(policies ...*ratelimit.Policy) {
	m := make(map[[2]string]*ratelimit.Policy, len(policies))
	for _, p := range policies {
		m[[2]string{p.Function, p.Version}] = p
	}
	f.policies.Store(&m)
	f.generation.Add(1)
}

func (f *finder) Find(_ context.Context, function, version string) (*ratelimit.Policy, bool) {
	m := *f.policies.Load()
	for _, key := range [...][2]string{{function, version}, {function, ratelimit.Any}, {ratelimit.Any, ratelimit.Any}} {
		if p, ok := m[key]; ok {
			return p, false
		}
	}
	return nil, false
}

func (f *finder) Generation() uint64 { return f.generation.Load() }
