package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// Sources is where values come from beside the defaults.
type Sources struct {
	File    string         // path of a YAML file; empty means none
	Environ []string       // as os.Environ gives it
	Flags   *pflag.FlagSet // flags of [AddFlags]; nil means none
}

// Load merges defaults, file, environment and flags and validates the whole.
// Every fault is reported, joined; the errors wrap [ErrConfig].
func Load(s Sources) (Config, error) {
	l := newLoader()
	l.file(s.File)
	l.environ(s.Environ)
	l.flags(s.Flags)
	cfg := l.decode()
	cfg.resolve(&l.faults)
	cfg.check(&l.faults)
	return cfg, errors.Join(once(l.faults)...)
}

// once leaves out what two parts found alike.
func once(faults []error) []error {
	seen := make(map[string]bool)
	return slices.DeleteFunc(faults, func(err error) bool {
		text := err.Error()
		defer func() { seen[text] = true }()
		return seen[text]
	})
}

// loader merges one source after the other and collects what is wrong.
type loader struct {
	known  map[string]key
	merged *koanf.Koanf
	faults []error
}

func newLoader() *loader {
	l := &loader{known: make(map[string]key), merged: koanf.New(".")}
	for _, k := range keys() {
		l.known[k.path] = k
	}
	l.must(l.merged.Load(structs.Provider(Default(), "koanf"), nil))
	return l
}

// must collects errors that only a mistake in this package can cause.
func (l *loader) must(err error) {
	if err != nil {
		l.faults = append(l.faults, fmt.Errorf("%w: %w", ErrConfig, err))
	}
}

func (l *loader) file(path string) {
	if path == "" {
		return
	}
	from := koanf.New(".")
	if err := from.Load(file.Provider(path), yaml.Parser()); err != nil {
		l.faults = append(l.faults, &Fault{Key: "config", Value: path, Reason: fileFault(path, err)})
		return
	}
	l.merge(from, func(string) string { return "file " + path })
}

// fileFault says why a file cannot be read, without its path.
func fileFault(path string, err error) string {
	text := strings.TrimPrefix(err.Error(), "open "+path+": ")
	if strings.Contains(text, "cannot unmarshal") {
		return "must be a YAML mapping of keys"
	}
	return text
}

// environ reads HEADGATE_ variables. What Kubernetes adds for a Service named
// headgate is not ours and is passed over.
func (l *loader) environ(environ []string) {
	names := make(map[string]string)
	for path, k := range l.known {
		names[k.env] = path
	}
	from := koanf.New(".")
	l.must(from.Load(env.Provider("", env.Opt{
		Prefix:      EnvPrefix,
		EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			if path, ok := names[name]; ok {
				return path, value
			}
			if !foreignEnv(name) {
				l.faults = append(l.faults, &Fault{Key: name, Reason: "no key has this name in the environment"})
			}
			return "", nil
		},
	}), nil))
	// The provider leaves keys flat, and flat keys merge like nested ones.
	l.merge(from, func(path string) string { return "environment " + l.known[path].env })
}

// serviceLinks are the variables that Kubernetes sets for Services whose name
// begins with headgate.
var serviceLinks = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// commandEnv are the variables of the command line that are no keys.
var commandEnv = []string{"HEADGATE_CONFIG", "HEADGATE_SERVER", "HEADGATE_CHECK_SERVER"}

// foreignEnv reports whether a HEADGATE_ variable is for somebody else: the
// commands that ask a server, or Kubernetes.
func foreignEnv(name string) bool {
	return slices.Contains(commandEnv, name) || serviceLinks.MatchString(name)
}

func (l *loader) flags(set *pflag.FlagSet) {
	if set == nil {
		return
	}
	from := koanf.New(".")
	l.must(from.Load(posflag.ProviderWithFlag(set, ".", nil, func(f *pflag.Flag) (string, any) {
		path, ours := flagKeys[f.Name]
		if !ours || !f.Changed {
			return "", nil
		}
		return path, posflag.FlagVal(set, f)
	}), nil))
	l.merge(from, func(path string) string { return "flag --" + flagOf(path) })
}

// merge takes over the values of one source that are known and of the right
// kind. A key without a value is as if it were not there.
func (l *loader) merge(from *koanf.Koanf, place func(path string) string) {
	all := from.All()
	for _, path := range slices.Sorted(maps.Keys(all)) {
		value := all[path]
		if empty, isMap := value.(map[string]any); value == nil || (isMap && len(empty) == 0) {
			if !l.isKnown(path) {
				l.faults = append(l.faults, &Fault{Key: path, From: place(path), Reason: "unknown key"})
			}
			continue
		}
		k, ok := l.known[path]
		if !ok {
			l.faults = append(l.faults, l.unknown(path, place(path)))
			continue
		}
		if k.secret && value == Redacted {
			l.faults = append(l.faults, &Fault{Key: path, From: place(path), Reason: "stands for a secret in what --print-config shows; write the secret"})
			continue
		}
		converted, err := k.convert(value)
		if err != nil {
			l.faults = append(l.faults, &Fault{Key: path, Value: k.show(value), From: place(path), Reason: err.Error()})
			continue
		}
		l.must(l.merged.Set(path, converted))
	}
}

// isKnown reports whether path is a key or a section of keys.
func (l *loader) isKnown(path string) bool {
	_, ok := l.known[path]
	return ok || l.isSection(path)
}

func (l *loader) isSection(path string) bool {
	for known := range l.known {
		if strings.HasPrefix(known, path+".") {
			return true
		}
	}
	return false
}

func (l *loader) unknown(path, from string) *Fault {
	if l.isSection(path) {
		return &Fault{Key: path, From: from, Reason: "is a section of keys, not a value"}
	}
	return &Fault{Key: path, From: from, Reason: "unknown key"}
}

// show is a value as a fault may repeat it.
func (k key) show(v any) string {
	if k.secret {
		return ""
	}
	return fmt.Sprint(v)
}

func (l *loader) decode() Config {
	var cfg Config
	l.must(l.merged.Unmarshal("", &cfg))
	return cfg
}

// resolve reads what the configuration only names.
func (c *Config) resolve(faults *[]error) {
	if c.Hash.SecretFile == "" {
		return
	}
	if c.Hash.Secret != "" {
		*faults = append(*faults, &Fault{Key: "hash.secretFile", Value: c.Hash.SecretFile, Reason: "cannot go with hash.secret"})
		return
	}
	secret, err := os.ReadFile(c.Hash.SecretFile)
	if err != nil {
		*faults = append(*faults, &Fault{Key: "hash.secretFile", Value: c.Hash.SecretFile, Reason: errors.Unwrap(err).Error()})
		return
	}
	c.Hash.Secret = strings.TrimRight(string(secret), "\r\n")
	if c.Hash.Secret == "" {
		*faults = append(*faults, &Fault{Key: "hash.secretFile", Value: c.Hash.SecretFile, Reason: "is empty"})
	}
}
