package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"go.yaml.in/yaml/v3"
)

// tierSpots is where the rates of a policy stand, for warnings about them.
type tierSpots struct {
	total, account, subject, exclude spot
	overrides                        map[string]spot
}

func (d *decoder) tiers(fields map[string]spot, p *ratelimit.Policy) tierSpots {
	at := tierSpots{overrides: map[string]spot{}}
	if s, ok := fields["total"]; ok {
		p.Total, at.total = d.plainTier(s)
	}
	if s, ok := fields["subject"]; ok {
		p.Subject, at.subject = d.plainTier(s)
	}
	if s, ok := fields["account"]; ok {
		d.accountTier(s, p, &at)
	}
	return at
}

// plainTier reads a tier that has rates and nothing else.
func (d *decoder) plainTier(s spot) ([]counter.Rate, spot) {
	fields, ok := d.fields(s, []string{"rates"})
	if !ok {
		return nil, s
	}
	rates, ok := fields["rates"]
	if !ok {
		d.fault(spot{joinPath(s.path, "rates"), joinPath(s.safe, "rates"), placeOnly(s)}, "is required")
		return nil, s
	}
	return d.rates(rates), rates
}

func (d *decoder) accountTier(s spot, p *ratelimit.Policy, at *tierSpots) {
	fields, ok := d.fields(s, []string{"rates", "overrides", "exclude"})
	if !ok {
		return
	}
	rates, hasRates := fields["rates"]
	if hasRates {
		p.Account, at.account = d.rates(rates), rates
	}
	overrides, hasOverrides := fields["overrides"]
	if hasOverrides {
		p.Overrides = d.overrides(overrides, at.overrides)
	}
	if exclude, ok := fields["exclude"]; ok {
		p.Exclude, at.exclude = d.exclude(exclude), exclude
	}
	if !hasRates && (!hasOverrides || isEmptyMapping(overrides.node)) {
		d.fault(spot{joinPath(s.path, "rates"), joinPath(s.safe, "rates"), placeOnly(s)}, "is required when there are no overrides")
	}
}

func isEmptyMapping(node *yaml.Node) bool {
	return node.Kind == yaml.MappingNode && len(node.Content) == 0
}

func (d *decoder) overrides(s spot, at map[string]spot) map[string][]counter.Rate {
	if s.node.Kind != yaml.MappingNode {
		d.privateFault(s, "must be a mapping of accounts to rates, is "+s.kind())
		return nil
	}
	if isEmptyMapping(s.node) {
		return nil
	}
	overrides := make(map[string][]counter.Rate, len(s.node.Content)/2)
	for i := 0; i+1 < len(s.node.Content); i += 2 {
		key := s.node.Content[i]
		value := s.account(key.Value, i/2, s.node.Content[i+1])
		account, ok := d.account(spot{value.path, value.safe, resolve(key)})
		if !ok {
			continue
		}
		if _, again := overrides[account]; again {
			d.privateFault(spot{value.path, value.safe, key}, "is given twice")
			continue
		}
		overrides[account], at[account] = d.rates(value), value
	}
	return overrides
}

func (d *decoder) exclude(s spot) map[string]struct{} {
	if s.node.Kind != yaml.SequenceNode {
		d.privateFault(s, "must be a list of accounts, is "+s.kind())
		return nil
	}
	if len(s.node.Content) == 0 {
		return nil
	}
	exclude := make(map[string]struct{}, len(s.node.Content))
	for i, node := range s.node.Content {
		if account, ok := d.account(s.item(i, node)); ok {
			exclude[account] = struct{}{}
		}
	}
	return exclude
}

func (d *decoder) account(s spot) (string, bool) {
	text, ok := s.scalar()
	if !ok {
		d.privateFault(s, "must be an account, is "+s.kind())
		return "", false
	}
	reason := nameFault(text)
	if text == ratelimit.Any {
		reason = `"*" is no account; account.rates is for every account`
	}
	if reason != "" {
		d.privateFault(s, reason)
		return "", false
	}
	return text, true
}

// rates reads a text ("10-S,300-H") or a list of texts and of long forms.
func (d *decoder) rates(s spot) []counter.Rate {
	if text, ok := s.scalar(); ok {
		rates, err := counter.ParseRates(text)
		d.rateFaults(s, err)
		return rates
	}
	if s.node == nil || s.node.Kind != yaml.SequenceNode {
		d.fault(s, `must be rates such as "10-S,300-H" or a list of them, is `+s.kind())
		return nil
	}
	var rates []counter.Rate
	for i, node := range s.node.Content {
		if rate, ok := d.rate(s.item(i, node)); ok {
			rates = append(rates, rate)
		}
	}
	rates = counter.Normalize(rates)
	switch {
	case len(s.node.Content) == 0:
		d.fault(s, counter.ErrNoRate.Error())
	case len(rates) > counter.MaxRates:
		d.fault(s, fmt.Sprintf("holds %d rates, at most %d may be given", len(rates), counter.MaxRates))
	}
	return rates
}

func (d *decoder) rate(s spot) (counter.Rate, bool) {
	if text, ok := s.scalar(); ok {
		rate, err := counter.ParseRate(text)
		d.rateFaults(s, err)
		return rate, err == nil
	}
	before := len(d.faults)
	fields, ok := d.fields(s, []string{"units", "period", "algorithm", "burst"})
	if !ok {
		return counter.Rate{}, false
	}
	var rate counter.Rate
	for _, name := range []string{"units", "period"} {
		if _, ok := fields[name]; !ok {
			d.fault(spot{joinPath(s.path, name), joinPath(s.safe, name), placeOnly(s)}, "is required")
		}
	}
	if f, ok := fields["units"]; ok {
		rate.Units = d.number(f, 0)
	}
	if f, ok := fields["period"]; ok {
		rate.Period = d.period(f)
	}
	if f, ok := fields["algorithm"]; ok {
		rate.Algorithm = choice(d, f, counter.Sliding, counter.Fixed, counter.TokenBucket)
	}
	if f, ok := fields["burst"]; ok {
		rate.Burst = d.number(f, 1)
		if rate.Algorithm != counter.TokenBucket {
			d.fault(f, "is for token-bucket only")
		}
	}
	return rate, len(d.faults) == before
}

func (d *decoder) number(s spot, least int64) int64 {
	text, _ := s.scalar()
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || int64(n) < least || int64(n) > counter.MaxUnits {
		d.fault(s, fmt.Sprintf("must be a whole number from %d to %d", least, counter.MaxUnits))
		return least
	}
	return int64(n)
}

// period reads what may stand behind the slash of a rate.
func (d *decoder) period(s spot) time.Duration {
	text, ok := s.scalar()
	if !ok || strings.ContainsAny(text, " \t\r\n,") {
		d.fault(s, "must be a duration such as 30s, 5m, 1h30m or 7d")
		return 0
	}
	rate, err := counter.ParseRate("1/" + text)
	var refused *counter.RateError
	if errors.As(err, &refused) {
		d.fault(s, refused.Reason)
	}
	return rate.Period
}

// rateFaults turns each fault that err joins into one of this document.
func (d *decoder) rateFaults(s spot, err error) {
	var refused *counter.RateError
	if !errors.As(err, &refused) && err != nil {
		d.fault(s, err.Error()) // there was no rate at all
		return
	}
	for _, one := range leaves(err) {
		if errors.As(one, &refused) {
			d.fault(s, refused.Reason)
			d.faults[len(d.faults)-1].Value = refused.Text
		}
	}
}

// leaves are the errors that err joins, or err itself.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range joined.Unwrap() {
			all = append(all, leaves(e)...)
		}
		return all
	}
	return []error{err}
}
