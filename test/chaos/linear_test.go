package chaos

import (
	"context"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/headgate-io/headgate/test/cluster"
)

// Histories of exact counters, one after the other: each counter is asked by a
// few clients at once, more often than it admits, whatever fault there is at the
// time.
const (
	exactLimit   = 10
	exactClients = 6
	exactChecks  = 5 // of each client
	exactPause   = 100 * time.Millisecond
	// checkBound is how long the search for an order may take.
	checkBound = 20 * time.Second
)

// recorder makes histories until it is stopped.
type recorder struct {
	cancel    context.CancelFunc
	work      sync.WaitGroup
	histories [][]cluster.Call
}

func record(c *cluster.Cluster, p cluster.Policy) *recorder {
	ctx, cancel := context.WithCancel(context.Background())
	r := &recorder{cancel: cancel}
	r.work.Go(func() {
		for ctx.Err() == nil {
			r.histories = append(r.histories, history(c, c.Fresh(p)))
		}
	})
	return r
}

func (r *recorder) stop() [][]cluster.Call {
	r.cancel()
	r.work.Wait()
	return r.histories
}

// history asks one counter.
func history(c *cluster.Cluster, k *cluster.Caller) []cluster.Call {
	var mu sync.Mutex
	var calls []cluster.Call
	var clients sync.WaitGroup
	for i := range exactClients {
		clients.Go(func() {
			for turn := range exactChecks {
				call := c.Ask(k, c.Nodes()[(i+turn)%nodes], patience)
				mu.Lock()
				calls = append(calls, call)
				mu.Unlock()
				<-time.After(exactPause)
			}
		})
	}
	clients.Wait()
	return calls
}

// outcome is what a client knows of a check. Where it knows nothing the unit may
// have been charged all the same, for good or for a while; so it may be the
// reason for a denial.
type outcome struct {
	admitted bool
	doubts   int // checks of unknown outcome that began before this one ended
}

// oneCounter is a counter of exactLimit units that does one thing at a time. Its
// state is what clients were given of it.
var oneCounter = porcupine.Model{
	Init: func() any { return 0 },
	Step: func(state, _, output any) (bool, any) {
		given, o := state.(int), output.(outcome)
		if o.admitted {
			return given < exactLimit, given + 1
		}
		return given+o.doubts >= exactLimit, given
	},
}

// wantLinearizable: the checks on each counter could have been done one after
// the other, each between its call and its answer.
func (s *storm) wantLinearizable(histories [][]cluster.Call) {
	s.t.Helper()
	full, doubts := 0, 0
	for i, calls := range histories {
		ops, unknown := operations(calls)
		doubts += unknown
		if unknown == 0 && len(ops) > exactLimit {
			full++
		}
		if got := porcupine.CheckOperationsTimeout(oneCounter, ops, checkBound); got != porcupine.Ok {
			s.t.Errorf("history %d of an exact counter: %v", i, got)
			for _, c := range calls {
				s.t.Logf("%8.4f to %8.4f s, node %d: allowed %v, degraded %v, %v",
					c.Start.Seconds(), c.End.Seconds(), c.Node, c.Allowed, c.Degraded, c.Err)
			}
		}
	}
	s.t.Logf("%d histories of exact counters, %d of them without a doubt, %d doubts in all", len(histories), full, doubts)
	if full == 0 {
		s.t.Error("no history was without doubt: nothing was checked")
	}
}

// operations are the decided calls, and how many are of unknown outcome: a node
// that died or froze with them, or that decided without its store. What was
// refused by a node that is not there was not decided.
func operations(calls []cluster.Call) (ops []porcupine.Operation, unknown int) {
	var doubtful []cluster.Call
	for _, c := range calls {
		if c.Err != nil && !notReady(c.Err) || c.Err == nil && c.Degraded {
			doubtful = append(doubtful, c)
		}
	}
	for _, c := range calls {
		if c.Err != nil || c.Degraded {
			continue
		}
		o := outcome{admitted: c.Allowed}
		for _, d := range doubtful {
			if d.Start <= c.End {
				o.doubts++
			}
		}
		ops = append(ops, porcupine.Operation{Call: int64(c.Start), Return: int64(c.End), Output: o})
	}
	return ops, len(doubtful)
}
