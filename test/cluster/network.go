package cluster

import "time"

// CutOff holds up all traffic between the node and the servers, or the other
// nodes. The cluster must be Cuttable. What was sent arrives after [Node.Heal].
func (n *Node) CutOff() {
	n.tb().Helper()
	n.onLinks((*proxy).cut)
}

// Heal ends [Node.CutOff].
func (n *Node) Heal() {
	n.tb().Helper()
	n.onLinks((*proxy).heal)
}

// SlowDown adds to every round trip between the node and its servers.
func (n *Node) SlowDown(roundTrip time.Duration) {
	n.tb().Helper()
	n.onLinks(func(p *proxy) { p.slow(roundTrip) })
}

// onLinks does something to every proxy that this node's traffic goes through:
// those it dials, and those by which other nodes dial it.
func (n *Node) onLinks(do func(*proxy)) {
	n.tb().Helper()
	if !n.cluster.opts.Cuttable {
		n.tb().Fatal("the network of this cluster cannot be cut; see Options.Cuttable")
	}
	own := at(n.host, portRoutes)
	for _, other := range n.cluster.nodes {
		for _, p := range other.proxies {
			if other == n || p.target == own {
				do(p)
			}
		}
	}
}
