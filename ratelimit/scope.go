package ratelimit

import (
	"iter"
	"strings"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"
)

// scope is one function's cells under one policy version. There is one scope
// per pair.
type scope struct {
	function, version string

	subjects *xsync.Map[subjectKey, *cell]
	accounts *xsync.Map[string, *cell]
	total    atomic.Pointer[cell]
}

// subjectKey names a caller: the same subject of two accounts is two callers.
type subjectKey struct{ account, subject string }

func newScope(function, version string) *scope {
	return &scope{
		function: strings.Clone(function),
		version:  strings.Clone(version),
		subjects: xsync.NewMap[subjectKey, *cell](),
		accounts: xsync.NewMap[string, *cell](),
	}
}

// find returns the cell of one tier of an invocation; nil when there is none.
func (s *scope) find(tier Tier, inv *Invocation) *cell {
	switch tier {
	case Subject:
		c, _ := s.subjects.Load(subjectKey{inv.Account, inv.Subject})
		return c
	case Account:
		c, _ := s.accounts.Load(inv.Account)
		return c
	default:
		return s.total.Load()
	}
}

// cells yields those of one tier.
func (s *scope) cells(tier Tier) iter.Seq[*cell] {
	return func(yield func(*cell) bool) {
		switch tier {
		case Subject:
			s.subjects.Range(func(_ subjectKey, c *cell) bool { return yield(c) })
		case Account:
			s.accounts.Range(func(_ string, c *cell) bool { return yield(c) })
		default:
			if c := s.total.Load(); c != nil {
				yield(c)
			}
		}
	}
}

// keep makes c the cell of its identity, or returns the one that is there
// already.
func (s *scope) keep(c *cell) (kept *cell, already bool) {
	switch c.tier {
	case Subject:
		return s.subjects.LoadOrStore(subjectKey{c.account, c.subject}, c)
	case Account:
		return s.accounts.LoadOrStore(c.account, c)
	default:
		if s.total.CompareAndSwap(nil, c) {
			return c, false
		}
		if kept := s.total.Load(); kept != nil {
			return kept, true
		}
		return c, true // lost to an eviction just now: used once, then forgotten
	}
}

// drop forgets the cell.
func (s *scope) drop(c *cell) {
	switch c.tier {
	case Subject:
		s.subjects.Delete(subjectKey{c.account, c.subject})
	case Account:
		s.accounts.Delete(c.account)
	default:
		s.total.CompareAndSwap(c, nil)
	}
}
