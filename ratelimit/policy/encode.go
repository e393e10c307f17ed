package policy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"go.yaml.in/yaml/v3"
)

// document is a policy as it is written. All of its defaults are spelled out,
// so that a document means the same under a release with other defaults.
type document struct {
	Function       string       `json:"function" yaml:"function"`
	Version        string       `json:"version" yaml:"version"`
	Total          *plainTier   `json:"total,omitempty" yaml:"total,omitempty"`
	Account        *accountTier `json:"account,omitempty" yaml:"account,omitempty"`
	Subject        *plainTier   `json:"subject,omitempty" yaml:"subject,omitempty"`
	Consistency    string       `json:"consistency" yaml:"consistency"`
	OnStoreFailure string       `json:"onStoreFailure" yaml:"onStoreFailure"`
	Enforce        bool         `json:"enforce" yaml:"enforce"`
}

type plainTier struct {
	Rates any `json:"rates" yaml:"rates"`
}

type accountTier struct {
	Rates     any            `json:"rates,omitempty" yaml:"rates,omitempty"`
	Overrides map[string]any `json:"overrides,omitempty" yaml:"overrides,omitempty"`
	Exclude   []string       `json:"exclude,omitempty" yaml:"exclude,omitempty"`
}

type longRate struct {
	Units     int64  `json:"units" yaml:"units"`
	Period    string `json:"period" yaml:"period"`
	Algorithm string `json:"algorithm,omitempty" yaml:"algorithm,omitempty"`
	Burst     int64  `json:"burst,omitempty" yaml:"burst,omitempty"`
}

// EncodeJSON writes a policy in the form that [Parse] reads, in one canonical
// way: equal policies give equal bytes. Source, Revision and Stale are not part
// of it.
func EncodeJSON(p *ratelimit.Policy) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(documentOf(p)); err != nil {
		return nil, fmt.Errorf("policy: encode: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// EncodeYAML writes policies in the form that [Parse] reads, one document each.
func EncodeYAML(policies ...*ratelimit.Policy) ([]byte, error) {
	var b bytes.Buffer
	if len(policies) == 0 {
		return nil, nil
	}
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	for _, p := range policies {
		if err := enc.Encode(documentOf(p)); err != nil {
			return nil, fmt.Errorf("policy: encode: %w", err)
		}
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("policy: encode: %w", err)
	}
	return b.Bytes(), nil
}

func documentOf(p *ratelimit.Policy) document {
	d := document{
		Function:       p.Function,
		Version:        cmp.Or(p.Version, ratelimit.Any),
		Total:          plainTierOf(p.Total),
		Subject:        plainTierOf(p.Subject),
		Consistency:    p.Consistency.String(),
		OnStoreFailure: p.OnStoreFailure.String(),
		Enforce:        !p.Shadow,
	}
	if len(p.Account)+len(p.Overrides)+len(p.Exclude) > 0 {
		d.Account = &accountTier{
			Rates: ratesOf(p.Account), Overrides: map[string]any{}, Exclude: sortedKeys(p.Exclude),
		}
		for account, rates := range p.Overrides {
			d.Account.Overrides[account] = ratesOf(rates)
		}
	}
	return d
}

func plainTierOf(rates []counter.Rate) *plainTier {
	if len(rates) == 0 {
		return nil
	}
	return &plainTier{Rates: ratesOf(rates)}
}

// ratesOf is a text where every rate is plain, else a list; nil for none.
func ratesOf(rates []counter.Rate) any {
	if len(rates) == 0 {
		return nil
	}
	texts := make([]string, len(rates))
	list := make([]longRate, len(rates))
	plain := true
	for i, r := range rates {
		texts[i] = r.String()
		list[i] = longRateOf(r)
		plain = plain && r.Algorithm == counter.Sliding
	}
	if plain {
		return strings.Join(texts, ",")
	}
	return list
}

func longRateOf(r counter.Rate) longRate {
	// The text of a rate knows how to write any period that can be read back.
	_, period, _ := strings.Cut(counter.Rate{Units: 1, Period: r.Period}.String(), "/")
	if period == "" {
		period = r.Period.String()
	}
	long := longRate{Units: r.Units, Period: shortPeriod(period), Burst: r.Burst}
	if r.Algorithm != counter.Sliding {
		long.Algorithm = r.Algorithm.String()
	}
	return long
}

// shortPeriod turns "1h0m0s" into "1h".
func shortPeriod(text string) string {
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
