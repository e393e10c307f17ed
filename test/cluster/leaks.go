package cluster

import (
	"strings"
	"testing"
)

// Bounds of what a failed test shows of the logs.
const (
	shownBytes = 300  // of a line that tells a caller
	maxLeaks   = 5    // of one log
	tailBytes  = 3000 // of each log of a cluster that failed
)

// end looks at the logs when all processes have ended.
func (c *Cluster) end() {
	c.searchLogs()
	if c.root.Failed() {
		c.tail(c.root)
	}
}

// searchLogs fails the test when a log tells who called.
func (c *Cluster) searchLogs() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		text, err := n.log.text()
		if err != nil {
			c.root.Error(err)
		}
		for _, leaked := range leaks(text, c.callers) {
			c.root.Errorf("the log of %s tells a caller: %s", n.Name(), leaked)
		}
	}
}

// leaks are the lines of a text that hold an account or a subject.
func leaks(text string, callers []string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		for _, who := range callers {
			if strings.Contains(line, who) && len(lines) < maxLeaks {
				lines = append(lines, line[:min(len(line), shownBytes)])
				break
			}
		}
	}
	return lines
}

// tail shows the ends of all logs.
func (c *Cluster) tail(tb testing.TB) {
	for _, n := range c.nodes {
		tb.Logf("--- the end of the log of %s:\n%s", n.Name(), n.log.tail(tailBytes))
	}
	for _, s := range c.servers {
		tb.Logf("--- the end of the log of %s:\n%s", s.Name(), s.log.tail(tailBytes))
	}
}
