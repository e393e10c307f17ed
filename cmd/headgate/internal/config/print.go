package config

import (
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
)

// Redacted stands for a secret that is set.
const Redacted = "(redacted)"

// YAML writes the configuration as a file that [Load] reads, without secrets.
func (c Config) YAML() ([]byte, error) {
	ko := koanf.New(".")
	if err := ko.Load(structs.Provider(c, "koanf"), nil); err != nil {
		return nil, err
	}
	for _, k := range keys() {
		switch value := ko.Get(k.path).(type) {
		case time.Duration:
			if err := ko.Set(k.path, value.String()); err != nil {
				return nil, err
			}
		case string:
			if !k.secret || value == "" {
				continue
			}
			if err := ko.Set(k.path, Redacted); err != nil {
				return nil, err
			}
		}
	}
	return ko.Marshal(yaml.Parser())
}
