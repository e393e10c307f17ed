package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

// row is one line of the table: a counter of 10 per hour, of which 4 are spent,
// then a perturbation, then, with every node that should be there ready and none
// degraded, 10 more. Right is 4 + 6.
type row struct {
	name    string
	perturb func(*cluster.Cluster)
}

// The rows of a kind share a cluster: each uses counters of its own.
var (
	graceful = []row{
		{"row01 control", func(*cluster.Cluster) {}},
		{"row02 graceful stop and replacement of one node", func(c *cluster.Cluster) {
			replaceTogether(c.Nodes()[:1])
		}},
		{"row03 graceful stop and replacement of two nodes", func(c *cluster.Cluster) {
			replaceTogether(c.Nodes()[:2])
		}},
		{"row04 graceful stop and replacement of all three", func(c *cluster.Cluster) {
			replaceTogether(c.Nodes())
		}},
		{"row05 rolling restart of all, no traffic, twice", func(c *cluster.Cluster) {
			roll(c, (*cluster.Node).Start)
			roll(c, (*cluster.Node).Start)
		}},
		{"row06 scale 3 to 2 to 3", scaleDownAndUp},
	}
	wiped = []row{
		{"row02 wiped: replacement of one node with an empty disk", func(c *cluster.Cluster) {
			replaceWiped(c, c.Node(1))
		}},
		{"row03 wiped: replacement of two nodes with empty disks", func(c *cluster.Cluster) {
			replaceWiped(c, c.Node(1))
			replaceWiped(c, c.Node(2))
		}},
		{"row04 wiped: replacement of all three with empty disks", func(c *cluster.Cluster) {
			for _, n := range c.Nodes() {
				replaceWiped(c, n)
			}
		}},
		{"row05 wiped: rolling restart onto empty disks, twice", func(c *cluster.Cluster) {
			roll(c, startWiped)
			roll(c, startWiped)
		}},
		{"row06 wiped: scale 3 to 2 to 3 with an empty disk", func(c *cluster.Cluster) {
			c.Node(3).Stop()
			startWiped(c.Node(3))
			c.AwaitReady()
		}},
	}
	forced = []row{
		{"row07 SIGKILL of one node", func(c *cluster.Cluster) {
			c.Node(1).Kill()
			c.StartAll()
		}},
		{"row08 SIGKILL of all three, one at a time", func(c *cluster.Cluster) {
			for _, n := range c.Nodes() {
				n.Kill()
				n.Start()
				c.AwaitReady()
			}
		}},
		{"row09 SIGKILL of all three at the same instant", func(c *cluster.Cluster) {
			cluster.Each(c.Nodes(), (*cluster.Node).Kill)
			c.StartAll()
		}},
		{"row10 SIGKILL faster than the cluster heals", killFasterThanItHeals},
	}
)

func TestRowsGraceful(t *testing.T) { inBothShapes(t, graceful, cluster.Options{}) }

func TestRowsForced(t *testing.T) { inBothShapes(t, forced, cluster.Options{}) }

// Only embedded servers have disks to lose with a node.
func TestRowsWiped(t *testing.T) {
	t.Parallel()
	judge(t, wiped, cluster.Options{Shape: cluster.Embedded})
}

// Row 16: only external servers are upgraded by themselves. How fast decisions are
// meanwhile is judged in TestRow16UpgradeOfNATS.
func TestRow16UpgradeKeepsCounters(t *testing.T) {
	t.Parallel()
	judge(t, []row{{"row16 rolling restart of the servers of NATS", upgrade}}, cluster.Options{Shape: cluster.External})
}

// clocks are by how much the wall clocks of row 15 are off.
var clocks = []time.Duration{-time.Hour, 0, time.Hour}

func TestRow15WallClocks(t *testing.T) {
	inBothShapes(t, []row{
		{"row15 wall clocks an hour behind, right and an hour ahead", wantOneClock},
		{"row15 rolling restart with those clocks", func(c *cluster.Cluster) { roll(c, (*cluster.Node).Start); wantOneClock(c) }},
	}, cluster.Options{Clocks: clocks})
}

// Row 15, once more where it hurts: the server whose clock is an hour behind
// stamps what was spent, and the one that is an hour ahead comes to lead.
func TestRow15LeadPassesToAServerThatIsAhead(t *testing.T) {
	t.Parallel()
	policies := []cluster.Policy{{Rates: "10-H"}, {Rates: "10-H", Consistency: "exact"}}
	c := cluster.Start(t, cluster.Options{Shape: cluster.Embedded, Policies: policies, Clocks: clocks})
	wantOneClock(c)
	passLead(c, c.Node(1))
	budgets := []*cluster.Caller{c.Fresh(policies[0]), c.Fresh(policies[1])}
	for _, b := range budgets {
		b.Spend(4)
	}
	passLead(c, c.Node(3))
	for _, b := range budgets {
		b.WantAdmitted(10, 6)
	}
}

// passLead restarts whoever leads the counters' bucket until that node does.
func passLead(c *cluster.Cluster, to *cluster.Node) {
	for c.Leader() != to {
		from := c.Leader()
		from.Stop()
		from.Start()
		c.AwaitReady()
		c.Await(time.Minute, "another node leads", func() error {
			if c.Leader() == from {
				return fmt.Errorf("%s still leads", from.Name())
			}
			return nil
		})
	}
}

// wantOneClock: the wall clocks really are off, and all nodes take the same
// instant for the store's: each knows by how much its own is off.
func wantOneClock(c *cluster.Cluster) {
	const near = time.Second
	c.Await(10*time.Second, "all nodes go by one clock", func() error {
		var first time.Duration
		for i, n := range c.Nodes() {
			offset := time.Duration(n.Metric("headgate_clock_offset_seconds") * float64(time.Second))
			store := offset + clocks[i] // the store's clock minus the right one
			if i == 0 {
				first = store
			}
			if apart := (store - first).Abs(); apart > near {
				return fmt.Errorf("%s is %v away from %s", n.Name(), apart, c.Node(1).Name())
			}
		}
		return nil
	})
}

func inBothShapes(t *testing.T, rows []row, opts cluster.Options) {
	t.Parallel()
	for _, shape := range cluster.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			t.Parallel()
			opts := opts
			opts.Shape = shape
			judge(t, rows, opts)
		})
	}
}

// judge runs rows on one cluster, each for the modes that promise the limit
// whatever happens.
func judge(t *testing.T, rows []row, opts cluster.Options) {
	leased := cluster.Policy{Rates: "10-H"}
	exact := cluster.Policy{Rates: "10-H", Consistency: "exact"}
	opts.Policies = []cluster.Policy{leased, exact}
	c := cluster.Start(t, opts)
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			c := c.In(t)
			budgets := []*cluster.Caller{c.Fresh(leased), c.Fresh(exact)}
			for _, b := range budgets {
				b.Spend(4)
			}
			r.perturb(c)
			c.AwaitReady()
			for _, b := range budgets {
				b.WantAdmitted(10, 6)
			}
		})
	}
}

// replaceTogether stops nodes at the same time and starts them again.
func replaceTogether(nodes []*cluster.Node) {
	cluster.Each(nodes, (*cluster.Node).Stop)
	for _, n := range nodes {
		n.Start()
	}
}

// roll replaces one node after the other, each waited for.
func roll(c *cluster.Cluster, start func(*cluster.Node)) {
	for _, n := range c.Nodes() {
		n.Stop()
		start(n)
		c.AwaitReady()
	}
}

func replaceWiped(c *cluster.Cluster, n *cluster.Node) {
	n.Stop()
	startWiped(n)
	c.AwaitReady()
}

func startWiped(n *cluster.Node) {
	n.WipeDisk()
	n.Start()
}

// scaleDownAndUp runs on two nodes until they have settled in, then on three.
func scaleDownAndUp(c *cluster.Cluster) {
	c.Node(3).Stop()
	c.AwaitNodes(2)
	c.Node(3).Start()
	c.AwaitReady()
	c.AwaitNodes(3)
}

// killFasterThanItHeals kills each node 200 ms after the one before was started
// again, which is long before that one has joined.
func killFasterThanItHeals(c *cluster.Cluster) {
	const between = 200 * time.Millisecond
	for _, n := range c.Nodes() {
		pause := time.NewTimer(between)
		n.Kill()
		n.Start()
		<-pause.C
	}
}
