package chaos

import (
	"errors"
	"syscall"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

const nodes = 3

// wantPromise holds the calls on one counter against what its policy promises.
//
// leased and exact that deny without the store: the limit, whatever happens.
// local: a node that is alone without the store spends its share on top, a third
// of the limit each. delayed: also what the others admit within a sync interval,
// and what a killed node had not posted yet, which together is at most what was
// offered in a second for every fault within the span.
func (s *storm) wantPromise(p cluster.Policy, calls []cluster.Call) {
	s.t.Helper()
	most, allowed := cluster.MostInSpan(calls, period), limit
	if p.OnStoreFailure == "local" {
		allowed += nodes * (limit / nodes)
	}
	if p.Consistency == "delayed" {
		allowed += perSecond * (1 + s.faultsInAnySpan(period))
	}
	admitted := len(cluster.Admitted(calls))
	s.t.Logf("%s: %d calls, %d admitted, at most %d in %v, allowed are %d",
		p.Function(), len(calls), admitted, most, period, allowed)
	if most > allowed {
		s.t.Errorf("%s: %d admitted in %v, want at most %d", p.Function(), most, period, allowed)
	}
	if admitted < limit {
		s.t.Errorf("%s: %d admitted in all, want at least one window's %d", p.Function(), admitted, limit)
	}
}

// faultsInAnySpan is the most outages of a node that touch a span.
func (s *storm) faultsInAnySpan(span time.Duration) int {
	most := 0
	for _, first := range s.outages {
		n := 0
		for _, o := range s.outages {
			if o.from >= first.from-span && o.from <= first.from+span {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

// wantOnlyTheDeadToFail: a call gets no decision only at a node that was dead,
// leaving or frozen. One that is cut off from its store decides.
func (s *storm) wantOnlyTheDeadToFail(calls []cluster.Call) {
	s.t.Helper()
	const shown = 5
	bad := 0
	for _, c := range calls {
		if c.Err == nil || s.wasOut(c) || notReady(c.Err) {
			continue
		}
		if bad++; bad <= shown {
			s.t.Errorf("%.3f to %.3f s: a living node gave no decision: %v", c.Start.Seconds(), c.End.Seconds(), c.Err)
		}
	}
	if bad > shown {
		s.t.Errorf("living nodes gave no decision %d times", bad)
	}
}

func (s *storm) wasOut(c cluster.Call) bool {
	for _, o := range s.outages {
		if o.node == c.Node && c.End >= o.from && c.Start <= o.to {
			return true
		}
	}
	return false
}

// notReady reports the answer of a node that joins, or the refusal of one that
// does not listen yet.
func notReady(err error) bool {
	var refused *cluster.RefusedError
	return errors.As(err, &refused) && refused.Status == 503 || errors.Is(err, syscall.ECONNREFUSED)
}
