package admin

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/ratelimit"
)

// Bounds of a list of counters.
const (
	defaultListed = 100
	maxListed     = 1000
)

// query asks for counters: by what an invocation would be counted under, or by
// a part of it.
type query struct {
	function, version string
	tier              ratelimit.Tier // NoTier: any
	account, subject  string
	limit             int
}

// readQuery reads a query from the parameters of a request.
func readQuery(r *http.Request) (query, error) {
	values := r.URL.Query()
	q := query{
		function: values.Get("function"), version: values.Get("version"),
		account: values.Get("account"), subject: values.Get("subject"), limit: defaultListed,
	}
	if text := values.Get("tier"); text != "" {
		tier, ok := parseTier(text)
		if !ok {
			return q, invalid("tier", "must be subject, account or total")
		}
		q.tier = tier
	}
	if text := values.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxListed {
			return q, invalid("limit", fmt.Sprintf("must be 1 to %d", maxListed))
		}
		q.limit = n
	}
	return q, q.consistent()
}

// consistent refuses what no counter could match.
func (q query) consistent() error {
	switch {
	case q.subject != "" && q.account == "":
		return invalid("account", "is required with a subject: each account's callers are counted apart")
	case q.tier == ratelimit.Account && q.subject != "":
		return invalid("subject", "does not go with the tier account")
	case q.tier == ratelimit.Total && q.account != "":
		return invalid("account", "does not go with the tier total")
	case q.tier == ratelimit.Subject && q.account != "" && q.subject == "":
		return invalid("subject", "is required with the tier subject and an account: subjects are stored as hashes")
	default:
		return nil
	}
}

func parseTier(text string) (ratelimit.Tier, bool) {
	for t := ratelimit.Subject; t <= ratelimit.Total; t++ {
		if t.String() == text {
			return t, true
		}
	}
	return ratelimit.NoTier, false
}

// identified reports whether the query names one invocation, whose counters are
// known without looking for them.
func (q query) identified() bool {
	return q.function != "" && q.version != "" && (q.account != "" || q.tier == ratelimit.Total)
}

// keys are the counters that an invocation as the query names it is counted
// under, by the policy in force.
func (q query) keys(ring *ratelimit.Keyring, p *ratelimit.Policy) ([]ratelimit.Key, error) {
	if p == nil {
		return nil, nil
	}
	var all []ratelimit.Key
	for t := ratelimit.Subject; t <= ratelimit.Total; t++ {
		wanted := q.tier == ratelimit.NoTier || q.tier == t
		if !wanted || len(ratesOf(p, t, q.account)) == 0 || t == ratelimit.Subject && q.subject == "" {
			continue
		}
		key, ok := ring.Key(t, q.function, p.Version, q.account, q.subject)
		if !ok {
			return nil, fmt.Errorf("no secret to hash subjects with yet: %w", ratelimit.ErrUnavailable)
		}
		all = append(all, key)
	}
	return all, nil
}

// pattern is what the keys of the counters that the query asks for look like.
func (q query) pattern(ring *ratelimit.Keyring) (string, error) {
	tokens := []string{"*", "*", "*", "*"}
	if q.function != "" {
		tokens[0] = ratelimit.EscapeToken(q.function)
	}
	if q.version != "" {
		tokens[1] = ratelimit.EscapeToken(q.version)
	}
	tier := q.tier
	switch {
	case tier != ratelimit.NoTier:
	case q.subject != "":
		tier = ratelimit.Subject
	case q.account != "":
		tier = ratelimit.Account
	}
	if tier != ratelimit.NoTier {
		tokens[2] = tier.String()
	}
	if q.account != "" {
		key, ok := ring.Key(tier, q.function, ratelimit.Any, q.account, q.subject)
		if !ok {
			return "", fmt.Errorf("no secret to hash subjects with yet: %w", ratelimit.ErrUnavailable)
		}
		tokens[3] = string(key[strings.LastIndexByte(string(key), '.')+1:])
	}
	return strings.Join(tokens, "."), nil
}
