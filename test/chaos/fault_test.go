package chaos

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// Bounds of one fault.
const (
	minFault = 300 * time.Millisecond
	maxFault = 4 * time.Second
	// maxCalm is the longest time between two faults.
	maxCalm = 2 * time.Second
	// aftermath is how long after a fault its node may still break calls: those
	// that were under way, and those that a frozen node takes up again.
	aftermath = 5 * time.Second
)

// outage is when a node could not be expected to answer.
type outage struct {
	node     int
	from, to time.Duration
}

// storm draws faults and keeps account of them.
type storm struct {
	t    *testing.T
	c    *cluster.Cluster
	rng  *rand.Rand
	base time.Time

	mu      sync.Mutex
	outages []outage
	told    []string
}

// fault is one kind of disturbance, for the nodes drawn. It ends healed, with
// every process running; nobody waits for them to be ready, unless it must.
type fault struct {
	name string
	do   func(*storm, []*cluster.Node)
}

func faultsOf(shape cluster.Shape) []fault {
	faults := []fault{
		{"kill", (*storm).kill},
		{"stop", (*storm).stop},
		{"freeze", (*storm).freeze},
		{"cut off", (*storm).cutOff},
		{"kill all", func(s *storm, _ []*cluster.Node) { s.kill(s.c.Nodes()) }},
	}
	if shape == cluster.Embedded {
		return append(faults,
			fault{"kill the leader", func(s *storm, _ []*cluster.Node) { s.kill([]*cluster.Node{s.c.Leader()}) }},
			fault{"freeze the leader", func(s *storm, _ []*cluster.Node) { s.freeze([]*cluster.Node{s.c.Leader()}) }},
			fault{"stop and wipe", (*storm).wipe},
		)
	}
	return append(faults,
		fault{"kill the leading server", (*storm).killServer},
		fault{"freeze a server", (*storm).freezeServer},
		fault{"kill all servers", (*storm).killServers},
	)
}

// rage draws faults until the time is up. At the end all is healed and ready.
func (s *storm) rage(shape cluster.Shape, length time.Duration) {
	faults := faultsOf(shape)
	for time.Since(s.base) < length {
		f := faults[s.rng.IntN(len(faults))]
		nodes := s.draw()
		s.tell(f.name, nodes)
		f.do(s, nodes)
		s.rest(s.upTo(maxCalm))
	}
	s.c.AwaitReady()
}

// draw is one node, or now and then two.
func (s *storm) draw() []*cluster.Node {
	nodes := append([]*cluster.Node(nil), s.c.Nodes()...)
	s.rng.Shuffle(len(nodes), func(i, k int) { nodes[i], nodes[k] = nodes[k], nodes[i] })
	return nodes[:1+s.rng.IntN(4)/3]
}

func (s *storm) tell(name string, nodes []*cluster.Node) {
	text := fmt.Sprintf("%7.3f s: %s", time.Since(s.base).Seconds(), name)
	for _, n := range nodes {
		text += " " + n.Name()
	}
	s.mu.Lock()
	s.told = append(s.told, text)
	s.mu.Unlock()
}

func (s *storm) rest(d time.Duration) { <-time.After(d) }

func (s *storm) upTo(d time.Duration) time.Duration { return time.Duration(s.rng.Int64N(int64(d))) }

// lasting is how long a fault lasts.
func (s *storm) lasting() time.Duration { return minFault + s.upTo(maxFault-minFault) }

// out notes that nodes could not be expected to answer while f ran, nor until
// they were ready again.
func (s *storm) out(nodes []*cluster.Node, f func()) {
	from := s.c.Now()
	f()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range nodes {
		s.outages = append(s.outages, outage{n.Number(), from, s.c.Now() + aftermath})
	}
}

// kill ends nodes with SIGKILL and starts them after a while. A node is out
// until it is ready; the next fault does not wait for that.
func (s *storm) kill(nodes []*cluster.Node) {
	away := s.upTo(maxFault / 2)
	s.out(nodes, func() {
		cluster.Each(nodes, (*cluster.Node).Kill)
		s.rest(away)
		for _, n := range nodes {
			n.Start()
		}
	})
	s.awaitSometimes()
}

// stop replaces nodes as an orchestrator does.
func (s *storm) stop(nodes []*cluster.Node) {
	s.out(nodes, func() {
		cluster.Each(nodes, func(n *cluster.Node) { n.Leave() }) // it may leave something unsettled
		for _, n := range nodes {
			n.Start()
		}
	})
	s.awaitSometimes()
}

// wipe replaces a node and its disk. A member that lost its disk must be current
// again before another one may lose anything.
func (s *storm) wipe(nodes []*cluster.Node) {
	s.c.AwaitReady()
	node := nodes[:1]
	s.out(node, func() {
		node[0].Leave()
		node[0].WipeDisk()
		node[0].Start()
		s.c.AwaitReady()
	})
}

func (s *storm) freeze(nodes []*cluster.Node) {
	lasts := s.lasting()
	s.out(nodes, func() {
		cluster.Each(nodes, (*cluster.Node).Freeze)
		s.rest(lasts)
		cluster.Each(nodes, (*cluster.Node).Thaw)
	})
}

// cutOff is no outage: a node that lost its store still answers.
func (s *storm) cutOff(nodes []*cluster.Node) {
	cluster.Each(nodes, (*cluster.Node).CutOff)
	s.rest(s.lasting())
	cluster.Each(nodes, (*cluster.Node).Heal)
}

func (s *storm) killServer([]*cluster.Node) {
	leader := s.c.LeaderServer()
	leader.Kill()
	s.rest(s.upTo(maxFault))
	leader.Start()
}

func (s *storm) freezeServer([]*cluster.Node) {
	servers := s.c.Servers()
	server := servers[s.rng.IntN(len(servers))]
	server.Freeze()
	s.rest(s.lasting())
	server.Thaw()
}

func (s *storm) killServers([]*cluster.Node) {
	for _, server := range s.c.Servers() {
		server.Kill()
	}
	for _, server := range s.c.Servers() {
		server.Start()
	}
	s.c.LeaderServer() // waits for one, so that nodes get to join
}

// awaitSometimes lets nodes become ready before the next fault, half of the
// time: otherwise hardly any fault would meet a healthy cluster.
func (s *storm) awaitSometimes() {
	if s.rng.IntN(2) == 0 {
		s.c.AwaitReady()
	}
}
