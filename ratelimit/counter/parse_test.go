package counter

import (
	"encoding"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	_ encoding.TextMarshaler   = Rate{}
	_ encoding.TextUnmarshaler = (*Rate)(nil)
)

func TestParseRate(t *testing.T) {
	tests := []struct {
		text      string
		want      Rate
		canonical string // empty: as text
	}{
		{"10-S", Rate{Units: 10, Period: time.Second}, ""},
		{"10-s", Rate{Units: 10, Period: time.Second}, "10-S"},
		{"300-h", Rate{Units: 300, Period: time.Hour}, "300-H"},
		{"5-M", Rate{Units: 5, Period: time.Minute}, ""},
		{"5000-d", Rate{Units: 5000, Period: day}, "5000-D"},
		{"0-S", Rate{Period: time.Second}, ""},
		{"007-S", Rate{Units: 7, Period: time.Second}, "7-S"},
		{"9007199254740992-D", Rate{Units: MaxUnits, Period: day}, ""},
		{"100/30s", Rate{Units: 100, Period: 30 * time.Second}, ""},
		{"100/30S", Rate{Units: 100, Period: 30 * time.Second}, "100/30s"},
		{"100/1s", Rate{Units: 100, Period: time.Second}, "100-S"},
		{"100/60s", Rate{Units: 100, Period: time.Minute}, "100-M"},
		{"100/m", Rate{Units: 100, Period: time.Minute}, "100-M"},
		{"100/H", Rate{Units: 100, Period: time.Hour}, "100-H"},
		{"100/d", Rate{Units: 100, Period: day}, "100-D"},
		{"100/24h", Rate{Units: 100, Period: day}, "100-D"},
		{"100/7d", Rate{Units: 100, Period: 7 * day}, ""},
		{"100/168h", Rate{Units: 100, Period: 7 * day}, "100/7d"},
		{"100/366d", Rate{Units: 100, Period: MaxPeriod}, ""},
		{"100/1h30m", Rate{Units: 100, Period: 90 * time.Minute}, "100/90m"},
		{"100/1.5s", Rate{Units: 100, Period: 1500 * time.Millisecond}, ""},
		{"100/1000000001ns", Rate{Units: 100, Period: time.Second + 1}, "100/1.000000001s"},
		{" 10-S ", Rate{Units: 10, Period: time.Second}, "10-S"},
		{"10-S sliding", Rate{Units: 10, Period: time.Second}, "10-S"},
		{"10-S fixed", Rate{Units: 10, Period: time.Second, Algorithm: Fixed}, ""},
		{"100/30s  Fixed", Rate{Units: 100, Period: 30 * time.Second, Algorithm: Fixed}, "100/30s fixed"},
		{"10-S token-bucket", Rate{Units: 10, Period: time.Second, Algorithm: TokenBucket}, ""},
		{"10-S token-bucket burst=20", Rate{Units: 10, Period: time.Second, Algorithm: TokenBucket, Burst: 20}, ""},
	}
	for _, tt := range tests {
		got, err := ParseRate(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("ParseRate(%q) = %+v, %v, want %+v", tt.text, got, err, tt.want)
			continue
		}
		canonical := tt.canonical
		if canonical == "" {
			canonical = tt.text
		}
		if got.String() != canonical {
			t.Errorf("ParseRate(%q) is written %q, want %q", tt.text, got.String(), canonical)
		}
		checkRoundTrip(t, got)
	}
}

// checkRoundTrip holds for every valid rate: its text reads back as itself.
func checkRoundTrip(t *testing.T, r Rate) {
	t.Helper()
	text, err := r.MarshalText()
	if err != nil {
		t.Fatalf("%+v: %v", r, err)
	}
	var back Rate
	if err := back.UnmarshalText(text); err != nil || back != r {
		t.Fatalf("%+v is written %q and reads back as %+v, %v", r, text, back, err)
	}
}

func TestParseRateRefuses(t *testing.T) {
	const form = "must be <units>-<S|M|H|D> or <units>/<period>"
	const letter = "one of the letters S, M, H, D"
	const span = "must be a duration such as 30s"
	tests := []struct{ text, reason string }{
		{"", "is empty"},
		{" \t", "is empty"},
		{"invalid", form},
		{"10", form},
		{"garbage", form},
		{"-5-S", unitsReason},
		{"+5-S", unitsReason},
		{"1.5-S", unitsReason},
		{"1e3-S", unitsReason},
		{"0x10-S", unitsReason},
		{"1_000-S", unitsReason},
		{"five-S", unitsReason},
		{"-S", unitsReason},
		{"/30s", unitsReason},
		{"9007199254740993-S", unitsReason},
		{"18446744073709551616-S", unitsReason},
		{"10-", letter},
		{"10-X", letter},
		{"10-SS", letter},
		{"10-10S", letter},
		{"10-S-M", letter},
		{"10-S/M", letter},
		{"10/", span},
		{"10/x", span},
		{"10/30", span},
		{"10/S-M", span},
		{"10/0s", periodReason},
		{"10/-30s", periodReason},
		{"10/999ms", periodReason},
		{"10/367d", periodReason},
		{"10/8785h", periodReason},
		{"10/1.5d", periodReason},
		{"10/-1d", periodReason},
		{"10/65536d", periodReason},
		{"10/99999999999999999999d", periodReason},
		{"10 - S", form},
		{"10-S gcra", "the algorithm must be"},
		{"10-S burst=5", "the algorithm must be"},
		{"10-S fixed burst=5", "only token-bucket takes an option"},
		{"10-S token-bucket 5", "must be burst=<units>"},
		{"10-S token-bucket burst=0", burstReason},
		{"10-S token-bucket burst=-1", burstReason},
		{"10-S token-bucket burst=9007199254740993", burstReason},
		{"10-S token-bucket burst=5 burst=6", "nothing may follow the burst"},
	}
	for _, tt := range tests {
		got, err := ParseRate(tt.text)
		var fault *RateError
		switch {
		case !errors.As(err, &fault) || !errors.Is(err, ErrRate):
			t.Errorf("ParseRate(%q) = %+v, %v, want a RateError", tt.text, got, err)
		case got != Rate{}:
			t.Errorf("ParseRate(%q) gives a rate beside its error: %+v", tt.text, got)
		case fault.Text != tt.text || !strings.Contains(fault.Reason, tt.reason):
			t.Errorf("ParseRate(%q) refuses %q: %q, want the text and %q", tt.text, fault.Text, fault.Reason, tt.reason)
		}
	}
}

// TestParseRatesNVCF are the list rules of the NVCF limiter, one line for each of
// its own tests. It skips a part that it cannot read; here that is an error, so
// that a limit which cannot be read never silently disappears.
func TestParseRatesNVCF(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"SingleRate", "4-S", "4-S"},
		{"MultipleRates", "5-S,300-H,5000-D", "5-S,300-H,5000-D"},
		{"WithWhitespace", " 5-S , 300-H ", "5-S,300-H"},
		{"ExactDuplicates", "5-S,5-S,300-H", "5-S,300-H"},
		{"AllDuplicates", "4-S,4-S,4-S", "4-S"},
		{"DuplicatePeriodKeepsStricter", "4-S,5-S,8-D", "4-S,8-D"},
		{"DuplicatePeriodKeepsStricterReversed", "5-S,4-S", "4-S"},
		{"DuplicatePeriodAndExactDuplicate", "4-S,5-S,4-S", "4-S"},
		{"TrailingComma", "4-S,", "4-S"},
		{"LeadingComma", ",4-S", "4-S"},
		{"LeadingAndTrailingCommas", ",4-S,", "4-S"},
		{"WhitespaceOnlyParts", "4-S, ,\t,8-D", "4-S,8-D"},
		{"UnorderedRates", "5-M,3-S", "5-M,3-S"},
		{"LowerCase", "5-m,3-s", "5-M,3-S"},
		{"OrderOfFirstMention", "5-S,9-M,4-S", "4-S,9-M"},
		{"LongFormDuplicate", "5/60s,4-M", "4-M"},
		{"AlgorithmsStandApart", "5-S,5-S fixed", "5-S,5-S fixed"},
		{"StricterBurst", "5-S token-bucket,5-S token-bucket burst=3", "5-S token-bucket burst=3"},
	}
	for _, tt := range tests {
		rates, err := ParseRates(tt.text)
		if got := written(rates); err != nil || got != tt.want {
			t.Errorf("%s: ParseRates(%q) = %q, %v, want %q", tt.name, tt.text, got, err, tt.want)
		}
	}
}

func TestParseRatesRefuses(t *testing.T) {
	tests := []struct {
		name, text string
		names      []string // parts that the error names
		noRate     bool
	}{
		{"InvalidRate", "invalid", []string{"invalid"}, true},
		{"PartiallyInvalid", "5-S,garbage,8-D", []string{"garbage"}, false},
		{"AllInvalid", "foo,bar", []string{"foo", "bar"}, true},
		{"EmptyString", "", nil, true},
		{"SingleComma", ",", nil, true},
		{"OnlyWhitespace", " \t ", nil, true},
	}
	for _, tt := range tests {
		rates, err := ParseRates(tt.text)
		if err == nil || rates != nil {
			t.Errorf("%s: ParseRates(%q) = %v, %v, want only an error", tt.name, tt.text, rates, err)
			continue
		}
		if errors.Is(err, ErrNoRate) != tt.noRate || errors.Is(err, ErrRate) != (tt.names != nil) {
			t.Errorf("%s: wrong kind of error: %v", tt.name, err)
		}
		for _, part := range tt.names {
			if !strings.Contains(err.Error(), `"`+part+`"`) {
				t.Errorf("%s: %q does not name %q", tt.name, err, part)
			}
		}
	}
}

func TestParseRatesBound(t *testing.T) {
	var parts []string
	for i := range MaxRates + 1 {
		parts = append(parts, Rate{Units: 1, Period: MinPeriod + time.Duration(i)}.String())
	}
	if rates, err := ParseRates(strings.Join(parts[:MaxRates], ",")); err != nil || len(rates) != MaxRates {
		t.Errorf("%d rates: %v, %v", MaxRates, rates, err)
	}
	if rates, err := ParseRates(strings.Join(parts, ",")); !errors.Is(err, ErrRate) {
		t.Errorf("%d rates were taken: %v", MaxRates+1, rates)
	}
}

func TestNormalizeLeavesItsInputAlone(t *testing.T) {
	in := mustRates("5-S,9-M")
	in = append(in, Rate{Units: 4, Period: time.Second})
	before := slices.Clone(in)
	if got := written(Normalize(in)); got != "4-S,9-M" || !slices.Equal(in, before) {
		t.Errorf("Normalize = %q, input now %v", got, in)
	}
}

func written(rates []Rate) string {
	parts := make([]string, 0, len(rates))
	for _, r := range rates {
		parts = append(parts, r.String())
	}
	return strings.Join(parts, ",")
}
