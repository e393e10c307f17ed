package nvcf

import (
	"sync"
	"time"

	"github.com/headgate-io/headgate/ratelimit/policy"
)

// maxTold bounds the distinct failures of the API that are told before it
// recovers.
const maxTold = 8

// health remembers which faults were told, so that each is told once. The zero
// value is healthy.
type health struct {
	mu      sync.Mutex
	told    map[string]bool     // failures of the API since it last recovered
	broken  map[function]string // the last answer that could not be read
	failed  time.Time           // the last failure
	success time.Time           // the last answer
	faulty  bool                // something was told since the last recovery
}

// note takes the end of one question and tells feed of a fault that is new.
func (h *health) note(e *entry, res result, err error, feed policy.Feed) {
	if h.isNew(e, res, err) {
		feed.Fault(err)
	}
}

func (h *health) isNew(e *entry, res result, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if res == failed {
		h.failed = time.Now()
		text := err.Error()
		if h.told[text] || len(h.told) >= maxTold {
			return false
		}
		if h.told == nil {
			h.told = map[string]bool{}
		}
		h.told[text], h.faulty = true, true
		return true
	}
	h.success = time.Now()
	if res != invalid {
		delete(h.broken, e.key)
		return false
	}
	if h.broken[e.key] == err.Error() || e.dropped.Load() {
		return false
	}
	if h.broken == nil {
		h.broken = map[function]string{}
	}
	h.broken[e.key], h.faulty = err.Error(), true
	return true
}

func (h *health) forget(key function) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.broken, key)
}

// settle tells feed that all is well again, once the API has answered and not
// failed for a while.
func (h *health) settle(while time.Duration, feed policy.Feed) {
	if h.isSettled(while) {
		feed.Recovered()
	}
}

func (h *health) isSettled(while time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.success.After(h.failed) && time.Since(h.failed) >= while {
		clear(h.told)
	}
	if !h.faulty || len(h.told) > 0 || len(h.broken) > 0 {
		return false
	}
	h.faulty = false
	return true
}
