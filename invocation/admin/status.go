package admin

import (
	"net/http"

	"github.com/headgate-io/headgate/invocation/internal/reply"
)

// Status is how a node and those it knows are doing.
type Status struct {
	Node     string `json:"node"` // the one that was asked
	Phase    string `json:"phase"`
	Version  string `json:"version"`
	Ready    bool   `json:"ready"`
	Degraded bool   `json:"degraded"` // it decides without the store
	// Unsettled is how many units it has yet to hand back or to post.
	Unsettled int64 `json:"unsettled"`
	Policies  int   `json:"policies"`
	// Counters is how many the store holds; null when it cannot be asked.
	Counters *int64   `json:"counters"`
	Nodes    []Node   `json:"nodes"`
	Buckets  []Bucket `json:"buckets"`
}

// Node is one Headgate process, as it last told of itself.
type Node struct {
	Name    string  `json:"name"`
	Phase   string  `json:"phase"`
	Version string  `json:"version"`
	Uptime  float64 `json:"uptime"` // seconds
	Offset  float64 `json:"offset"` // seconds that the store's clock is ahead of its own
	// Alive is false when it has been silent for longer than one that works is;
	// what it last told is then no longer so.
	Alive  bool    `json:"alive"`
	Silent float64 `json:"silent"` // seconds since it told
}

// Bucket is one bucket of the store.
type Bucket struct {
	Name     string    `json:"name"`
	Leader   string    `json:"leader"` // empty while there is none
	Replicas []Replica `json:"replicas"`
	Records  int64     `json:"records"`
	Bytes    int64     `json:"bytes"`
}

// Replica is one copy of a bucket.
type Replica struct {
	Name    string `json:"name"`
	Current bool   `json:"current"`
	Offline bool   `json:"offline"`
	Lag     int64  `json:"lag"` // writes that it has yet to take
}

func (h *handler) status(w http.ResponseWriter, r *http.Request) error {
	s, err := h.parts.Status(r.Context())
	if err != nil {
		return err
	}
	s.Nodes, s.Buckets = list(s.Nodes), list(s.Buckets)
	for i := range s.Buckets {
		s.Buckets[i].Replicas = list(s.Buckets[i].Replicas)
	}
	reply.JSON(w, http.StatusOK, s)
	return nil
}

// list is values as JSON tells a list: empty, never null.
func list[T any](values []T) []T {
	if values == nil {
		return []T{}
	}
	return values
}
