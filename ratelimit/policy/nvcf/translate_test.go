package nvcf

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/policy"
	"github.com/headgate-io/headgate/ratelimit/policy/nvcf/nvcfapipb"
)

func sliding(units int64, period time.Duration) counter.Rate {
	return counter.Rate{Units: units, Period: period}
}

func TestTranslate(t *testing.T) {
	t.Parallel()
	config := &nvcfapipb.RateLimitConfig{
		Rate:           new(" 5-s , ,300-H"),
		ExcludedNcaIds: []string{"a", "b"},
		PerNcaIdConfigs: []*nvcfapipb.PerNcaIdConfig{
			{NcaId: "b", Rate: "2-S"}, {NcaId: "c", Rate: "4-S,9-M"}, {NcaId: "c", Rate: "3-S"},
		},
		PerUserRate: new("2-M"),
	}
	got, err := translate(function{"f", "v"}, config, counter.Sliding)
	if err != nil {
		t.Fatal(err)
	}
	want := &ratelimit.Policy{
		Function: "f", Version: "v", Source: policy.NVCF, Revision: got.Revision,
		Account:   []counter.Rate{sliding(5, time.Second), sliding(300, time.Hour)},
		Exclude:   map[string]struct{}{"a": {}, "b": {}},
		Overrides: map[string][]counter.Rate{"b": {sliding(2, time.Second)}, "c": {sliding(3, time.Second), sliding(9, time.Minute)}},
		Subject:   []counter.Rate{sliding(2, time.Minute)},
	}
	if !reflect.DeepEqual(got, want) || got.Revision == "" {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	fixed, err := translate(function{"f", "v"}, config, counter.Fixed)
	if err != nil || fixed.Account[0].Algorithm != counter.Fixed || fixed.Revision == got.Revision {
		t.Errorf("fixed windows: %+v, %v", fixed, err)
	}
}

// Every form of the rates that the limiter this replaces reads; what it drops
// without a word is a fault here.
func TestTranslate_rates(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		want  []counter.Rate
		fault string // empty: none
	}{
		{"4-S", []counter.Rate{sliding(4, time.Second)}, ""},
		{"5-S,300-H,5000-D", []counter.Rate{sliding(5, time.Second), sliding(300, time.Hour), sliding(5000, 24*time.Hour)}, ""},
		{" 5-S , 300-H ", []counter.Rate{sliding(5, time.Second), sliding(300, time.Hour)}, ""},
		{",5-S,,", []counter.Rate{sliding(5, time.Second)}, ""},
		{"5-S,5-S", []counter.Rate{sliding(5, time.Second)}, ""},
		{"4-S,5-S,8-D", []counter.Rate{sliding(4, time.Second), sliding(8, 24*time.Hour)}, ""},
		{"5-S,4-S", []counter.Rate{sliding(4, time.Second)}, ""},
		{"0-S", []counter.Rate{sliding(0, time.Second)}, ""},
		{"5-S,garbage", []counter.Rate{sliding(5, time.Second)}, `rate: rate "garbage"`},
		{"foo,bar", nil, `rate: rate "foo"`},
		{"10", nil, `rate: rate "10"`},
		{"10-X", nil, `rate: rate "10-X"`},
		{"-5-S", nil, `rate: rate "-5-S"`},
		{"1.5-S", nil, `rate: rate "1.5-S"`},
		{"10-10S", nil, `rate: rate "10-10S"`},
		{"", nil, "rate: no rate given"},
		{" , ", nil, "rate: no rate given"},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			t.Parallel()
			p, err := translate(function{"f", "v"}, &nvcfapipb.RateLimitConfig{Rate: &tt.text}, counter.Sliding)
			var got []counter.Rate
			if p != nil {
				got = p.Account
			}
			if !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if (err == nil) != (tt.fault == "") || err != nil && !strings.Contains(err.Error(), `function "f" version "v": `+tt.fault) {
				t.Errorf("fault %v, want %q", err, tt.fault)
			}
		})
	}
}

// Each field's fault names the field, and no account.
func TestTranslate_faults(t *testing.T) {
	t.Parallel()
	_, err := translate(function{"f", "v"}, &nvcfapipb.RateLimitConfig{
		Rate: new("x-S"), PerUserRate: new("y-S"), ExcludedNcaIds: []string{"acme", "", "ac\xffme"},
		PerNcaIdConfigs: []*nvcfapipb.PerNcaIdConfig{{NcaId: "acme", Rate: "z-S"}, {Rate: "1-S"}},
	}, counter.Sliding)
	for _, want := range []string{": rate: ", ": perUserRate: ", ": perNcaIdConfigs[1].rate: ", ": perNcaIdConfigs[2].ncaId: ", ": excludedNcaIds[2]: ", ": excludedNcaIds[3]: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "acme") {
		t.Errorf("%v names an account", err)
	}
}
