package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/headgate-io/headgate/invocation/internal/reply"
	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
)

// maxGrantBytes bounds the body of a grant: one number.
const maxGrantBytes = 4 << 10

// leaseEntry is what one node holds of a counter.
type leaseEntry struct {
	Node  string  `json:"node"`
	Units int64   `json:"units"`
	Until float64 `json:"until"` // seconds from now
}

// counterDetail is a counter with the leases on it.
type counterDetail struct {
	counterEntry
	Leases []leaseEntry `json:"leases"`
	Silent []string     `json:"silent"` // nodes that do not say whether they hold any
}

// counterList is the answer to a query.
type counterList struct {
	Counters []counterEntry `json:"counters"`
	More     bool           `json:"more"` // the list was cut off at its limit
}

func (h *handler) listCounters(w http.ResponseWriter, r *http.Request) error {
	q, err := readQuery(r)
	if err != nil {
		return err
	}
	answer := counterList{Counters: []counterEntry{}}
	if q.identified() {
		p, _ := h.parts.View.Find(r.Context(), q.function, q.version)
		keys, err := q.keys(h.parts.Keys, p)
		if err != nil {
			return err
		}
		for _, key := range keys {
			entry, err := h.read(r.Context(), key)
			if err != nil {
				return err
			}
			answer.Counters = append(answer.Counters, entry)
		}
		reply.JSON(w, http.StatusOK, answer)
		return nil
	}
	pattern, err := q.pattern(h.parts.Keys)
	if err != nil {
		return err
	}
	stored, more, err := h.parts.Counters.List(r.Context(), pattern, q.limit)
	if err != nil {
		return err
	}
	answer.More = more
	for _, s := range stored {
		entry, _, err := h.entry(r.Context(), s.Key, s.State)
		if err != nil {
			return err
		}
		answer.Counters = append(answer.Counters, entry)
	}
	reply.JSON(w, http.StatusOK, answer)
	return nil
}

func (h *handler) getCounter(w http.ResponseWriter, r *http.Request) error {
	key := ratelimit.Key(r.PathValue("key"))
	if _, err := h.known(r.Context(), key); err != nil {
		return err
	}
	return h.answer(w, r, key)
}

// known is the rates of a counter that a policy counts with, or that holds
// something; any other is [ErrNotFound].
func (h *handler) known(ctx context.Context, key ratelimit.Key) ([]counter.Rate, error) {
	if _, err := ratelimit.ParseKey(key); err != nil {
		return nil, invalid("key", "is not a counter's")
	}
	state, err := h.parts.Counters.Get(ctx, key)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	_, rates, err := h.entry(ctx, key, state)
	if err == nil && len(rates) == 0 {
		err = ErrNotFound
	}
	return rates, err
}

// answer tells a counter as it stands now, with its leases.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, key ratelimit.Key) error {
	entry, err := h.read(r.Context(), key)
	if err != nil {
		return err
	}
	leases, err := h.parts.Operator.Leases(r.Context(), key)
	if err != nil {
		return err
	}
	detail := counterDetail{counterEntry: entry, Leases: []leaseEntry{}, Silent: list(leases.Silent)}
	for _, l := range leases.Held {
		detail.Leases = append(detail.Leases, leaseEntry{Node: l.Node, Units: l.Units, Until: seconds(l.Until)})
	}
	reply.JSON(w, http.StatusOK, detail)
	return nil
}

func (h *handler) resetCounter(w http.ResponseWriter, r *http.Request) error {
	key := ratelimit.Key(r.PathValue("key"))
	rates, err := h.known(r.Context(), key)
	if err != nil {
		return err
	}
	if err := h.parts.Operator.Reset(r.Context(), key, rates); err != nil {
		return err
	}
	return h.answer(w, r, key)
}

func (h *handler) grantCounter(w http.ResponseWriter, r *http.Request) error {
	key := ratelimit.Key(r.PathValue("key"))
	units, err := readGrant(w, r)
	if err != nil {
		return err
	}
	rates, err := h.known(r.Context(), key)
	if err != nil {
		return err
	}
	if err := h.parts.Operator.Grant(r.Context(), key, rates, units); err != nil {
		return err
	}
	return h.answer(w, r, key)
}

// readGrant reads {"units": n}.
func readGrant(w http.ResponseWriter, r *http.Request) (int64, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxGrantBytes))
	if err != nil {
		return 0, readFault(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return 0, &problem{status: http.StatusBadRequest, Code: "invalid", Message: `the body must be {"units": n}`}
	}
	for name := range fields {
		if name != "units" {
			return 0, invalid(name, "is not a field of a grant")
		}
	}
	var units int64
	if err := json.Unmarshal(fields["units"], &units); err != nil || units < 1 || units > counter.MaxUnits {
		return 0, invalid("units", "must be a whole number, 1 to 2^53")
	}
	return units, nil
}
