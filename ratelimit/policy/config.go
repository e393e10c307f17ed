package policy

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// The names of the sources that this module has.
const (
	File   = "file"
	Bucket = "bucket"
	NVCF   = "nvcf"
)

// Config is what an operator sets. Start from [DefaultConfig].
type Config struct {
	// Path is a policy file, or a directory of *.yaml, *.yml and *.json files.
	// Empty means no file source.
	Path string
	// Order is the names of the sources in the order in which they are asked:
	// "file", "bucket", "nvcf". A name whose source is not set up is skipped;
	// a source that is not named is not asked.
	Order []string
	// Poll is how often the path is read without having been told of a
	// change, for file systems that tell of none. 100 ms to 1 h.
	Poll time.Duration
	// Settle is how long the path must be left alone after a change before it
	// is read, so that half-written files are rarely met. A path that never
	// rests is read every 4 times that. 1 ms to 250 ms.
	Settle time.Duration
}

// DefaultConfig has no path; changes of one are in force within 200 ms.
func DefaultConfig() Config {
	return Config{
		Order:  []string{File, Bucket, NVCF},
		Poll:   5 * time.Second,
		Settle: 50 * time.Millisecond,
	}
}

// Validate reports every fault, joined; each is a [*ConfigError].
func (c Config) Validate() error {
	var faults []error
	known := []string{File, Bucket, NVCF}
	for i, name := range c.Order {
		switch {
		case !slices.Contains(known, name):
			faults = append(faults, &ConfigError{"Order", name, "must be one of file, bucket, nvcf"})
		case slices.Contains(c.Order[:i], name):
			faults = append(faults, &ConfigError{"Order", name, "is given twice"})
		}
	}
	if c.Path != "" && !slices.Contains(c.Order, File) {
		faults = append(faults, &ConfigError{"Order", c.Order, "must name file when Path is set"})
	}
	if c.Poll < 100*time.Millisecond || c.Poll > time.Hour {
		faults = append(faults, &ConfigError{"Poll", c.Poll, "must be from 100ms to 1h"})
	}
	if c.Settle < time.Millisecond || c.Settle > 250*time.Millisecond {
		faults = append(faults, &ConfigError{"Settle", c.Settle, "must be from 1ms to 250ms"})
	}
	return errors.Join(faults...)
}

// ConfigError is one rejected setting.
type ConfigError struct {
	Field string
	Value any
	Why   string
}

func (e *ConfigError) Error() string {
	return fmt.Sprintf("policy: %s=%v: %s", e.Field, e.Value, e.Why)
}
