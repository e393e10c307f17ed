package cluster

import (
	"fmt"
	"strings"
)

// Policy is what a test wants of a limiter. The zero value of each field but
// the rates is the product's default. Functions are named for their policy.
type Policy struct {
	// Rates are those of the account tier: "10-H", "10-S,100-M", or the
	// long form in brackets.
	Rates string
	// Subject are those of the subject tier; empty means there is none.
	Subject string
	// Consistency is leased, exact or delayed.
	Consistency string
	// OnStoreFailure is local, allow or deny.
	OnStoreFailure string
}

// Function is the name of the function that the policy is for.
func (p Policy) Function() string {
	words := []string{"fn", p.Rates}
	for _, word := range []string{p.Subject, p.Consistency, p.OnStoreFailure} {
		if word != "" {
			words = append(words, word)
		}
	}
	name := strings.Join(words, "-")
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, name), "-")
}

// document is the policy as its file holds it.
func (p Policy) document() string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\nfunction: %s\naccount: {rates: %s}\n", p.Function(), quotedRates(p.Rates))
	if p.Subject != "" {
		fmt.Fprintf(&b, "subject: {rates: %s}\n", quotedRates(p.Subject))
	}
	if p.Consistency != "" {
		fmt.Fprintf(&b, "consistency: %s\n", p.Consistency)
	}
	if p.OnStoreFailure != "" {
		fmt.Fprintf(&b, "onStoreFailure: %s\n", p.OnStoreFailure)
	}
	return b.String()
}

// quotedRates quotes a text and leaves the long form as it is.
func quotedRates(rates string) string {
	if strings.HasPrefix(rates, "[") {
		return rates
	}
	return fmt.Sprintf("%q", rates)
}

func documents(policies []Policy) string {
	var b strings.Builder
	for _, p := range policies {
		b.WriteString(p.document())
	}
	return b.String()
}
