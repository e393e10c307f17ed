package nvcf

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf/nvcfapipb"
)

// FieldFault is a field of the API's answer that cannot be read. It wraps
// [policy.ErrPolicy] and the error of the rate. Its text names no account.
type FieldFault struct {
	Function, Version string
	Field             string // "rate", "perNcaIdConfigs[2].rate", counted from 1
	Err               error
}

func (f *FieldFault) Error() string {
	reason := strings.ReplaceAll(f.Err.Error(), "\n", "; ")
	return fmt.Sprintf("function %q version %q: %s: %s", f.Function, f.Version, f.Field, reason)
}

// Unwrap makes errors.Is(err, policy.ErrPolicy) true.
func (f *FieldFault) Unwrap() []error { return []error{policy.ErrPolicy, f.Err} }

// translator turns one answer into a policy.
type translator struct {
	policy    *ratelimit.Policy
	algorithm counter.Algorithm
	faults    []error
}

// translate gives the policy of an answer, nil when it limits nothing. Beside
// faults the policy has what could be read: of no use where a good one is
// known.
func translate(key function, config *nvcfapipb.RateLimitConfig, algorithm counter.Algorithm) (*ratelimit.Policy, error) {
	if config == nil {
		return nil, nil
	}
	t := &translator{algorithm: algorithm, policy: &ratelimit.Policy{
		Function: key.id, Version: key.version, Source: policy.NVCF,
	}}
	// An empty text is no different from one that cannot be read, where the
	// field is there: somebody meant a limit.
	if config.Rate != nil {
		t.policy.Account = t.rates("rate", *config.Rate)
	}
	if config.PerUserRate != nil {
		t.policy.Subject = t.rates("perUserRate", *config.PerUserRate)
	}
	t.overrides(config.PerNcaIdConfigs)
	t.exclude(config.ExcludedNcaIds)
	p := t.policy
	if len(p.Account)+len(p.Subject)+len(p.Overrides) == 0 {
		return nil, errors.Join(t.faults...)
	}
	p.Revision = policy.Digest(p)
	return p, errors.Join(t.faults...)
}

// overrides takes the stricter rates where an account is named twice.
func (t *translator) overrides(configs []*nvcfapipb.PerNcaIdConfig) {
	for i, c := range configs {
		field := fmt.Sprintf("perNcaIdConfigs[%d]", i+1)
		if c.GetNcaId() == "" || !utf8.ValidString(c.GetNcaId()) {
			t.fault(field+".ncaId", errors.New("is no account"))
			continue
		}
		rates := t.rates(field+".rate", c.GetRate())
		if len(rates) == 0 {
			continue
		}
		if t.policy.Overrides == nil {
			t.policy.Overrides = make(map[string][]counter.Rate, len(configs))
		}
		t.policy.Overrides[c.NcaId] = counter.Normalize(append(t.policy.Overrides[c.NcaId], rates...))
	}
}

func (t *translator) exclude(accounts []string) {
	for i, account := range accounts {
		if account == "" || !utf8.ValidString(account) {
			t.fault(fmt.Sprintf("excludedNcaIds[%d]", i+1), errors.New("is no account"))
			continue
		}
		if t.policy.Exclude == nil {
			t.policy.Exclude = make(map[string]struct{}, len(accounts))
		}
		t.policy.Exclude[account] = struct{}{}
	}
}

// rates reads a list; beside a fault it gives the parts that can be read.
func (t *translator) rates(field, text string) []counter.Rate {
	rates, err := counter.ParseRates(text)
	if err != nil {
		t.fault(field, withoutEcho(err))
		rates = readable(text)
	}
	for i := range rates {
		if rates[i].Algorithm == counter.Sliding {
			rates[i].Algorithm = t.algorithm
		}
	}
	return counter.Normalize(rates)
}

// withoutEcho drops "no rate given" where it only follows from the faults of
// the rates that were.
func withoutEcho(err error) error {
	joined, ok := err.(interface{ Unwrap() []error })
	var refused *counter.RateError
	if !ok || !errors.As(err, &refused) {
		return err
	}
	var rest []error
	for _, e := range joined.Unwrap() {
		if !errors.Is(e, counter.ErrNoRate) {
			rest = append(rest, e)
		}
	}
	return errors.Join(rest...)
}

func readable(text string) (rates []counter.Rate) {
	for part := range strings.SplitSeq(text, ",") {
		if rate, err := counter.ParseRate(part); err == nil && len(rates) < counter.MaxRates {
			rates = append(rates, rate)
		}
	}
	return rates
}

func (t *translator) fault(field string, err error) {
	t.faults = append(t.faults, &FieldFault{t.policy.Function, t.policy.Version, field, err})
}
