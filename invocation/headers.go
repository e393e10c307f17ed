package invocation

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/headgate-io/headgate/ratelimit"
)

// Header fields of an answer. The first two are those of
// draft-ietf-httpapi-ratelimit-headers, in the form with named policies:
//
//	RateLimit-Policy: "account";q=10;w=3600
//	RateLimit: "account";r=6;t=30
const (
	headerPolicy     = "RateLimit-Policy"
	headerLimit      = "RateLimit"
	headerRetryAfter = "Retry-After"
)

// maxHeaderInteger is the largest integer that a structured field can carry
// (RFC 9651); limits go beyond it.
const maxHeaderInteger = 999_999_999_999_999

// setHeaders says in header fields what standings say, and when to come back.
func setHeaders(h http.Header, d ratelimit.Decision, standings []ratelimit.Standing) {
	if d.Outcome == ratelimit.Denied && !d.Allowed() {
		h.Set(headerRetryAfter, strconv.FormatInt(max(1, wholeSeconds(d.RetryAfter)), 10))
	}
	if len(standings) == 0 {
		return
	}
	policy, limit := make([]byte, 0, 64), make([]byte, 0, 64)
	for i, s := range standings {
		if i > 0 {
			policy, limit = append(policy, ", "...), append(limit, ", "...)
		}
		name := headerName(standings, s)
		policy = appendItem(policy, name, 'q', s.Rate.Units, 'w', wholeSeconds(s.Rate.Period))
		limit = appendItem(limit, name, 'r', max(0, s.Remaining), 't', wholeSeconds(s.Reset))
	}
	h.Set(headerPolicy, string(policy))
	h.Set(headerLimit, string(limit))
}

func appendItem(b []byte, name string, key1 byte, value1 int64, key2 byte, value2 int64) []byte {
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, '"', ';', key1, '=')
	b = strconv.AppendInt(b, min(value1, maxHeaderInteger), 10)
	b = append(b, ';', key2, '=')
	return strconv.AppendInt(b, min(value2, maxHeaderInteger), 10)
}

// headerName is the tier's name; with the rate's text behind it where the tier
// has several rates, since names tell the items of the two fields apart.
func headerName(all []ratelimit.Standing, s ratelimit.Standing) string {
	same := 0
	for _, other := range all {
		if other.Tier == s.Tier {
			same++
		}
	}
	if same == 1 {
		return s.Tier.String()
	}
	return s.Tier.String() + "-" + strings.ReplaceAll(s.Rate.String(), " ", "-")
}
