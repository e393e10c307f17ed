package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/policy"
)

// limitsOf is what a document limits, in one line.
func limitsOf(doc json.RawMessage) string {
	policies, _, err := policy.Parse(doc)
	if err != nil || len(policies) != 1 {
		return "?" // of a newer server; get -o json shows it as it is
	}
	p := policies[0]
	var parts []string
	for _, tier := range []struct {
		tier  ratelimit.Tier
		rates []counter.Rate
	}{{ratelimit.Subject, p.Subject}, {ratelimit.Account, p.Account}, {ratelimit.Total, p.Total}} {
		if len(tier.rates) > 0 {
			parts = append(parts, tier.tier.String()+" "+ratesText(tier.rates))
		}
	}
	if n := len(p.Overrides); n > 0 {
		parts = append(parts, fmt.Sprintf("%d overridden", n))
	}
	if n := len(p.Exclude); n > 0 {
		parts = append(parts, fmt.Sprintf("%d excluded", n))
	}
	if p.Shadow {
		parts = append(parts, "not enforced")
	}
	return strings.Join(parts, "; ")
}

func ratesText(rates []counter.Rate) string {
	texts := make([]string, len(rates))
	for i, r := range rates {
		texts[i] = r.String()
	}
	return strings.Join(texts, ",")
}
