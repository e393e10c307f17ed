package config

import (
	"reflect"
	"strings"
	"unicode"
)

// key is one leaf of [Config].
type key struct {
	path   string       // "nats.tls.caFile"
	env    string       // "HEADGATE_NATS_TLS_CA_FILE"
	kind   reflect.Type // string, bool, int, time.Duration or []string
	secret bool
}

// EnvPrefix begins the name of every environment variable that is read.
const EnvPrefix = "HEADGATE_"

// keys is every leaf of Config, in the order of its fields.
func keys() []key { return leaves(reflect.TypeFor[Config](), "") }

func leaves(t reflect.Type, prefix string) []key {
	var out []key
	for field := range t.Fields() {
		path := prefix + field.Tag.Get("koanf")
		if field.Type.Kind() == reflect.Struct {
			out = append(out, leaves(field.Type, path+".")...)
			continue
		}
		out = append(out, key{path, envName(path), field.Type, field.Tag.Get("secret") != ""})
	}
	return out
}

// envName is a key's name in the environment: words are split where dots and
// capitals are, and a run of capitals is one word.
func envName(path string) string {
	var b strings.Builder
	b.WriteString(EnvPrefix)
	var before rune
	for _, r := range path {
		switch {
		case r == '.':
			r = '_'
		case unicode.IsUpper(r) && unicode.IsLower(before):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
		before = r
	}
	return b.String()
}

// EnvNames is the environment variable of every key, for help texts.
func EnvNames() map[string]string {
	names := make(map[string]string)
	for _, k := range keys() {
		names[k.path] = k.env
	}
	return names
}

// Keys is the path of every key, in order.
func Keys() []string {
	all := keys()
	paths := make([]string, len(all))
	for i, k := range all {
		paths[i] = k.path
	}
	return paths
}
