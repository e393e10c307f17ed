package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Call is one invocation of a load as its client saw it.
type Call struct {
	Caller   *Caller
	Node     int           // that answered, or was asked last
	Start    time.Duration // since the cluster was started; of the attempt that was answered
	End      time.Duration
	Allowed  bool
	Degraded bool
	Err      error // there was no decision
	Tries    int   // nodes asked
}

// Took is how long the answered attempt took.
func (c Call) Took() time.Duration { return c.End - c.Start }

// Plan is a load.
type Plan struct {
	Callers   []*Caller // in turn
	PerSecond int
	// Nodes are asked in turn; none means all of the cluster.
	Nodes []*Node
	// Retry: a client that finds its node gone, or loses its connection to it,
	// asks the next one.
	Retry bool
	// Wire: HTTP tells what was degraded.
	Wire Wire
	// Deadline of a client; 0 means one that no stall of a machine reaches:
	// how long calls take is for the test to judge.
	Deadline time.Duration
}

// Load is a load that runs.
type Load struct {
	cluster *Cluster
	plan    Plan
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu    sync.Mutex
	calls []Call
	turn  atomic.Int64
}

// maxTries bounds how many nodes a client asks that finds them gone.
const maxTries = 20

// retryPause is how long a client waits that found all nodes gone.
const retryPause = 10 * time.Millisecond

// Offer starts a load. It runs until [Load.Stop], at the latest until the test
// ends, and never waits for an answer before the next call.
func (c *Cluster) Offer(p Plan) *Load {
	c.tb().Helper()
	if len(p.Nodes) == 0 {
		p.Nodes = c.nodes
	}
	if p.Deadline == 0 {
		p.Deadline = askBound
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &Load{cluster: c, plan: p, cancel: cancel}
	l.running.Go(func() { l.run(ctx) })
	c.tb().Cleanup(func() { l.Stop() })
	return l
}

// run starts the calls that are due, as many as it missed.
func (l *Load) run(ctx context.Context) {
	interval := time.Second / time.Duration(l.plan.PerSecond)
	tick := time.NewTicker(max(interval, time.Millisecond))
	defer tick.Stop()
	start := time.Now()
	for sent := 0; ; {
		for due := int(time.Since(start) / interval); sent < due; sent++ {
			l.running.Go(l.call)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Stop ends the load, waits for the calls under way and returns all of them.
func (l *Load) Stop() []Call {
	l.cancel()
	l.running.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls
}

// Calls are those that were answered so far.
func (l *Load) Calls() []Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.calls[:len(l.calls):len(l.calls)]
}

func (l *Load) call() {
	turn := int(l.turn.Add(1))
	c := Call{Caller: l.plan.Callers[turn%len(l.plan.Callers)]}
	for c.Tries < maxTries {
		n := l.plan.Nodes[(turn+c.Tries)%len(l.plan.Nodes)]
		c.Tries++
		l.ask(&c, n)
		if c.Err == nil || !l.plan.Retry || !Broken(c.Err) {
			break
		}
		if c.Tries%len(l.plan.Nodes) == 0 {
			pause := time.NewTimer(retryPause)
			<-pause.C
		}
	}
	l.mu.Lock()
	l.calls = append(l.calls, c)
	l.mu.Unlock()
}

// ask is one attempt.
func (l *Load) ask(c *Call, n *Node) {
	ctx, cancel := context.WithTimeout(context.Background(), l.plan.Deadline)
	defer cancel()
	c.Node, c.Start = n.number, time.Since(l.cluster.base)
	a, err := n.Ask(ctx, l.plan.Wire, c.Caller.Question())
	c.End = time.Since(l.cluster.base)
	c.Allowed, c.Degraded, c.Err = a.Allowed, a.Degraded, err
	if err != nil {
		c.Err = fmt.Errorf("%s: %w", n.Name(), err)
	}
}

// Gone reports whether an error is the refusal of a process that is gone or
// says that it is leaving: such a call was not decided.
func Gone(err error) bool {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused.Status == 503
	}
	return errors.Is(err, syscall.ECONNREFUSED) || unavailable(err)
}

// Broken reports whether an error is that of a connection to a process that
// ended during the call, or of one that is gone: nobody knows what was decided.
func Broken(err error) bool {
	return Gone(err) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		err != nil && strings.Contains(err.Error(), closedIdle)
}

// closedIdle is what net/http says, in an error of its own, of a connection that
// the server closed just before it was to be used.
const closedIdle = "server closed idle connection"

// Noise is a load that nothing limits and that so needs no store: what its calls
// take is the machine's doing.
func (c *Cluster) Noise() *Load {
	c.tb().Helper()
	const perSecond = 100
	return c.Offer(Plan{Callers: []*Caller{c.Unlimited()}, PerSecond: perSecond, Retry: true})
}

// Closed has clients ask without pause, each waiting for its answer before it
// asks the next node, and returns all calls.
func (c *Cluster) Closed(k *Caller, clients int, length time.Duration) []Call {
	c.tb().Helper()
	l := &Load{cluster: c, plan: Plan{Callers: []*Caller{k}, Nodes: c.nodes, Deadline: askBound}}
	end := time.Now().Add(length)
	for range clients {
		l.running.Go(func() {
			for time.Now().Before(end) {
				l.call()
			}
		})
	}
	l.running.Wait()
	return l.calls
}

// Ask is one call of a caller at a node, over HTTP, recorded as those of a load.
func (c *Cluster) Ask(k *Caller, n *Node, deadline time.Duration) Call {
	l := &Load{cluster: c, plan: Plan{Wire: HTTP, Deadline: deadline}}
	call := Call{Caller: k, Tries: 1}
	l.ask(&call, n)
	return call
}
