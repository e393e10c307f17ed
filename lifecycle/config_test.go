package lifecycle

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestConfig_defaultIsValid(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestConfig_Validate(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		edit  func(*Config)
		wants []string // every one is in the error
	}{
		{"negative notice", func(c *Config) { c.DrainNotice = -1 }, []string{"drain.notice: -1ns"}},
		{"no settlement", func(c *Config) { c.SettleTimeout = 0 }, []string{"settle.timeout: 0s"}},
		{"no grace for the doors", func(c *Config) { c.DrainGrace = 0 }, []string{"drain.grace: 0s"}},
		{"a sum that does not fit names its parts", func(c *Config) { c.GracePeriod = 20 * time.Second }, []string{
			"lifecycle.gracePeriod: 20s", "27s", "drain.notice 3s", "drain.grace 10s", "settle.timeout 8s",
			"lifecycle.leaveTimeout 5s", "250ms of slack",
		}},
		{"every fault at once", func(c *Config) { c.ProbeInterval, c.ProbeTimeout, c.MinReady = 0, 0, -time.Second }, []string{
			"lifecycle.probeInterval: 0s", "lifecycle.probeTimeout: 0s", "lifecycle.minReady: -1s",
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := DefaultConfig()
			c.edit(&cfg)
			err := cfg.Validate()
			if !errors.Is(err, ErrConfig) {
				t.Fatalf("got %v, want ErrConfig", err)
			}
			for _, want := range c.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q lacks %q", err, want)
				}
			}
			if _, err := New(cfg, nil); !errors.Is(err, ErrConfig) {
				t.Errorf("New took it: %v", err)
			}
		})
	}
}

// The sum may be exactly the grace period.
func TestConfig_sumFitsExactly(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	cfg.GracePeriod = 27 * time.Second
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	cfg.GracePeriod--
	if err := cfg.Validate(); err == nil {
		t.Fatal("one nanosecond too few was accepted")
	}
}
