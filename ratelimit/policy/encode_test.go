package policy

import (
	"bytes"
	"reflect"
	"testing"
)

const everyForm = `
- function: f
- function: f<&>g
  version: v1
  total: {rates: ["100/30s fixed", {units: 10, period: 1h, algorithm: token-bucket, burst: 20}, "7/7d"]}
  account:
    rates: "10-S,1000-H"
    overrides: {b: "1-D", a: [{units: 5, period: 90m, algorithm: fixed}]}
    exclude: [z, y]
  subject: {rates: "5/90s"}
  consistency: exact
  onStoreFailure: deny
  enforce: false
- {function: "*", account: {overrides: {"007": 1-S, "true": 2-S}}}
`

// What is written reads back as what it was.
func TestEncode_roundTrip(t *testing.T) {
	t.Parallel()
	policies, _, err := Parse([]byte(everyForm))
	if err != nil {
		t.Fatal(err)
	}
	asYAML, err := EncodeYAML(policies...)
	if err != nil {
		t.Fatal(err)
	}
	var asJSON bytes.Buffer
	for _, p := range policies {
		data, err := EncodeJSON(p)
		if err != nil {
			t.Fatal(err)
		}
		asJSON.Write(data)
	}
	for _, text := range [][]byte{asYAML, asJSON.Bytes()} {
		again, _, err := Parse(text)
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if !reflect.DeepEqual(again, policies) {
			t.Errorf("reads back differently:\n%s", text)
		}
	}
}

func TestEncodeJSON_canonical(t *testing.T) {
	t.Parallel()
	policies, _, err := Parse([]byte(everyForm))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"function":"f<&>g","version":"v1",` +
		`"total":{"rates":[{"units":100,"period":"30s","algorithm":"fixed"},` +
		`{"units":10,"period":"1h","algorithm":"token-bucket","burst":20},{"units":7,"period":"7d"}]},` +
		`"account":{"rates":"10-S,1000-H","overrides":{"a":[{"units":5,"period":"90m","algorithm":"fixed"}],"b":"1-D"},` +
		`"exclude":["y","z"]},"subject":{"rates":"5/90s"},"consistency":"exact","onStoreFailure":"deny","enforce":false}`
	got, err := EncodeJSON(policies[1])
	if err != nil || string(got) != want {
		t.Errorf("error %v\ngot  %s\nwant %s", err, got, want)
	}
	if Digest(policies[0]) == Digest(policies[1]) {
		t.Error("digests do not tell policies apart by what they say")
	}
}

// FuzzParse: nothing makes Parse panic or give policies beside a fault, and
// what it takes reads back the same from both forms.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(everyForm))
	f.Add([]byte(`{"function":"f","total":{"rates":[{"units":1,"period":"1s","algorithm":"token-bucket","burst":2}]}}`))
	f.Add([]byte("function: &a f\nversion: *a\n---\n- {function: '*'}\n"))
	f.Add([]byte("function: f\naccount: {overrides: {a: 1-S, a: 2-S}, exclude: [null]}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		policies, _, err := Parse(data)
		if err != nil {
			if policies != nil || len(Faults(err)) == 0 || err.Error() == "" {
				t.Fatalf("policies %v, error %v", policies, err)
			}
			return
		}
		text, err := EncodeYAML(policies...)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := Parse(text)
		if err != nil || !reflect.DeepEqual(again, policies) && len(policies) > 0 {
			t.Fatalf("YAML reads back differently (%v):\n%s", err, text)
		}
		for _, p := range policies {
			one, err := EncodeJSON(p)
			if err != nil {
				t.Fatal(err)
			}
			again, _, err := Parse(one)
			if err != nil || !reflect.DeepEqual(again[0], p) {
				t.Fatalf("JSON reads back differently (%v):\n%s", err, one)
			}
		}
	})
}
