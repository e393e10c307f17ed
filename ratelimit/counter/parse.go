package counter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// letters are the periods with a letter, largest first.
var letters = [...]struct {
	letter, small string
	span          time.Duration
}{{"D", "d", day}, {"H", "h", time.Hour}, {"M", "m", time.Minute}, {"S", "s", time.Second}}

// Reasons that both reading and validating a rate give.
const (
	unitsReason  = "units must be a whole number from 0 to 9007199254740992"
	burstReason  = "burst must be a whole number from 1 to 9007199254740992"
	periodReason = "period must be from 1s to 366d"
)

// ParseRate reads one rate:
//
//	<units>-<S|M|H|D>       the letter in either case: 10-S
//	<units>/<period>        100/30s, 100/1h30m, 100/7d, 100/m
//
// followed, after white space, by an algorithm (sliding, fixed, token-bucket)
// and for a token bucket by burst=<units>. Units are digits only: no sign, no
// fraction. The error is a [*RateError] and wraps [ErrRate].
func ParseRate(text string) (Rate, error) {
	refuse := func(reason string) (Rate, error) { return Rate{}, &RateError{text, reason} }
	words := strings.Fields(text)
	if len(words) == 0 {
		return refuse("is empty")
	}
	rate, reason := parseAmount(words[0])
	if reason != "" {
		return refuse(reason)
	}
	if reason := rate.parseOptions(words[1:]); reason != "" {
		return refuse(reason)
	}
	return rate, nil
}

// parseAmount reads units and period; a reason that is not empty is a fault.
func parseAmount(word string) (rate Rate, reason string) {
	at := strings.IndexAny(word, "-/")
	if at < 0 {
		return rate, "must be <units>-<S|M|H|D> or <units>/<period>"
	}
	n, ok := parseUnits(word[:at])
	if !ok {
		return rate, unitsReason
	}
	rate.Units = n
	if word[at] == '-' {
		rate.Period, reason = parseLetter(word[at+1:])
	} else {
		rate.Period, reason = parsePeriod(word[at+1:])
	}
	return rate, reason
}

// parseUnits reads digits, and digits only, up to MaxUnits.
func parseUnits(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 64) // refuses signs
	return int64(n), err == nil && n <= uint64(MaxUnits)
}

func parseLetter(text string) (period time.Duration, reason string) {
	for _, u := range letters {
		if text == u.letter || text == u.small {
			return u.span, ""
		}
	}
	return 0, "the period after '-' must be one of the letters S, M, H, D"
}

// parsePeriod reads "m", "7d" or a Go duration, in either case.
func parsePeriod(text string) (period time.Duration, reason string) {
	if period, reason = parseLetter(text); reason == "" {
		return period, ""
	}
	text = strings.ToLower(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil || time.Duration(n) > MaxPeriod/day {
			return 0, periodReason
		}
		period = time.Duration(n) * day
	} else if parsed, err := time.ParseDuration(text); err == nil {
		period = parsed
	} else {
		return 0, "the period after '/' must be a duration such as 30s, 5m, 1h30m or 7d"
	}
	if period < MinPeriod || period > MaxPeriod {
		return 0, periodReason
	}
	return period, ""
}

// parseOptions reads what may follow: an algorithm, then a burst.
func (r *Rate) parseOptions(words []string) (reason string) {
	if len(words) == 0 {
		return ""
	}
	algorithm, err := ParseAlgorithm(strings.ToLower(words[0]))
	if err != nil {
		return "the algorithm must be sliding, fixed or token-bucket"
	}
	r.Algorithm = algorithm
	switch {
	case len(words) == 1:
		return ""
	case len(words) > 2:
		return "nothing may follow the burst"
	case algorithm != TokenBucket:
		return "only token-bucket takes an option, burst=<units>"
	}
	value, ok := strings.CutPrefix(strings.ToLower(words[1]), "burst=")
	if !ok {
		return "the option of token-bucket must be burst=<units>"
	}
	burst, ok := parseUnits(value)
	if !ok || burst == 0 {
		return burstReason
	}
	r.Burst = burst
	return ""
}

// ParseRates reads a list of rates separated by commas. White space and empty
// parts are skipped, and the rest is normalized as [Normalize] does.
//
// All faults come joined: a [*RateError] for each part that cannot be read,
// [ErrNoRate] when no part is a rate. No rate is returned beside an error, so
// that a limit which cannot be read never silently disappears.
func ParseRates(text string) ([]Rate, error) {
	var (
		rates  []Rate
		faults []error
	)
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		rate, err := ParseRate(part)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		rates = append(rates, rate)
	}
	if len(rates) == 0 {
		faults = append(faults, ErrNoRate)
	}
	rates = Normalize(rates)
	if len(rates) > MaxRates {
		faults = append(faults, &RateError{text, fmt.Sprintf("holds %d rates, at most %d may be given", len(rates), MaxRates)})
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return rates, nil
}

// MarshalText is [Rate.String], for a rate that is valid.
func (r Rate) MarshalText() ([]byte, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	return []byte(r.String()), nil
}

// UnmarshalText is [ParseRate].
func (r *Rate) UnmarshalText(text []byte) error {
	parsed, err := ParseRate(string(text))
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}
