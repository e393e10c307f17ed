package counter

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Bounds of a [Rate].
const (
	MaxUnits  = int64(1) << 53
	MinPeriod = time.Second
	MaxPeriod = 366 * 24 * time.Hour
	// Slices is how many slices a sliding period is cut into.
	Slices = 60
	// MaxRates is how many rates one list may hold.
	MaxRates = 16
)

// Algorithm says how a rate forgets. The zero Algorithm is Sliding.
type Algorithm uint8

// The algorithms. Their numbers are stored in records: never renumber.
const (
	Sliding     Algorithm = 0 // at most Units in any span of one Period
	Fixed       Algorithm = 1 // at most Units per window, opened by its first charge
	TokenBucket Algorithm = 2 // at most Burst at once, refilled at Units per Period
)

// algorithms are the names, by number.
var algorithms = [...]string{Sliding: "sliding", Fixed: "fixed", TokenBucket: "token-bucket"}

// String is the algorithm as policies spell it.
func (a Algorithm) String() string {
	if int(a) >= len(algorithms) {
		return "algorithm(" + strconv.Itoa(int(a)) + ")"
	}
	return algorithms[a]
}

// ParseAlgorithm reads what [Algorithm.String] writes. The error wraps
// [ErrRate].
func ParseAlgorithm(text string) (Algorithm, error) {
	for a, name := range algorithms {
		if text == name {
			return Algorithm(a), nil
		}
	}
	return 0, &RateError{"algorithm=" + text, "must be sliding, fixed or token-bucket"}
}

// Rate is units per period. The zero Rate is invalid: a limit that nobody wrote
// must not admit anything. Two Rates are the same when they are ==.
type Rate struct {
	Units     int64         // 0 to MaxUnits; 0 denies all
	Period    time.Duration // MinPeriod to MaxPeriod
	Algorithm Algorithm
	Burst     int64 // token bucket only, 1 to MaxUnits; 0 means Units
}

// Validate reports every fault, joined; each is a [*RateError] that names the
// field, its value and the reason.
func (r Rate) Validate() error {
	var faults []error
	refuse := func(field string, value any, reason string) {
		faults = append(faults, &RateError{fmt.Sprintf("%s=%v", field, value), reason})
	}
	if r.Units < 0 || r.Units > MaxUnits {
		refuse("units", r.Units, unitsReason)
	}
	if r.Period < MinPeriod || r.Period > MaxPeriod {
		refuse("period", r.Period, periodReason)
	}
	if r.Algorithm > TokenBucket {
		refuse("algorithm", r.Algorithm, "must be sliding, fixed or token-bucket")
	}
	switch {
	case r.Burst != 0 && r.Algorithm != TokenBucket:
		refuse("burst", r.Burst, "is for token-bucket only")
	case r.Burst < 0 || r.Burst > MaxUnits:
		refuse("burst", r.Burst, burstReason)
	}
	return errors.Join(faults...)
}

// Capacity is the most units the rate ever admits at once: Units, or the burst
// of a token bucket. A cost above it can never be admitted.
func (r Rate) Capacity() int64 {
	if r.Algorithm == TokenBucket && r.Burst != 0 && r.Units != 0 {
		return r.Burst
	}
	return r.Units
}

// String is the rate in the form that [ParseRate] reads back: "10-S",
// "100/30s", "100/30s fixed", "100/30s token-bucket burst=20".
func (r Rate) String() string {
	text := strconv.FormatInt(r.Units, 10) + periodText(r.Period)
	if r.Algorithm != Sliding {
		text += " " + r.Algorithm.String()
	}
	if r.Burst != 0 {
		text += " burst=" + strconv.FormatInt(r.Burst, 10)
	}
	return text
}

// periodText is "-S" for the four periods that have a letter, else "/30s" in
// the largest unit that leaves no rest.
func periodText(period time.Duration) string {
	for _, u := range letters {
		if period == u.span {
			return "-" + u.letter
		}
	}
	for _, u := range letters {
		if period > 0 && period%u.span == 0 {
			return "/" + strconv.FormatInt(int64(period/u.span), 10) + u.small
		}
	}
	return "/" + period.String()
}

// countable reports whether arithmetic with the rate is defined. A rate that
// fails here admits nothing and charges nothing, so that a fault that slipped
// past validation fails closed.
func (r Rate) countable() bool {
	return r.Period >= MinPeriod && r.Period <= MaxPeriod && r.Algorithm <= TokenBucket && r.Units >= 0
}

// Normalize drops exact duplicates and keeps the stricter of two rates of one
// period and algorithm: the one with fewer units, then with the smaller burst.
// The order of first mention stays. Rates handed to a [Counter] must be
// normalized. It allocates a new list.
func Normalize(rates []Rate) []Rate {
	out := make([]Rate, 0, len(rates))
	for _, r := range rates {
		i := indexOf(out, r.Period, r.Algorithm)
		switch {
		case i < 0:
			out = append(out, r)
		case stricter(r, out[i]):
			out[i] = r
		}
	}
	return out
}

func stricter(a, b Rate) bool {
	if a.Units != b.Units {
		return a.Units < b.Units
	}
	return a.Capacity() < b.Capacity()
}

// indexOf is the place of the rate with this period and algorithm, or -1.
func indexOf(rates []Rate, period time.Duration, algorithm Algorithm) int {
	for i := range rates {
		if rates[i].Period == period && rates[i].Algorithm == algorithm {
			return i
		}
	}
	return -1
}
