package lifecycle

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Slack is what a step gets beyond its bound to obey its ended context, before
// the sequence goes on without it. [Config.Validate] counts it once per step.
const Slack = 250 * time.Millisecond

// shutdownSteps is how many bounded steps a shutdown has.
const shutdownSteps = 4

// Config is what an operator sets. Start from [DefaultConfig].
type Config struct {
	// GracePeriod is how long the process may take to leave before whoever
	// started it kills it (terminationGracePeriodSeconds on Kubernetes). All
	// bounds below together, and [Slack] for each, must fit in it.
	GracePeriod time.Duration
	// DrainNotice is how long the node keeps serving after it stopped saying
	// that it is ready, so that load balancers see it first. 0 is no notice.
	DrainNotice time.Duration
	// DrainGrace bounds the graceful close of the front doors; after it they
	// are closed by force.
	DrainGrace time.Duration
	// SettleTimeout bounds the settlement of what is owed to the store.
	SettleTimeout time.Duration
	// LeaveTimeout bounds leaving the store: heartbeat removed, connection
	// drained, embedded server gone.
	LeaveTimeout time.Duration
	// MinReady is how long all checks must hold in a row before the node says
	// that it is ready for the first time; it paces a rollout. 0 is at once.
	MinReady time.Duration
	// ProbeInterval is the time between two rounds of checks.
	ProbeInterval time.Duration
	// ProbeTimeout bounds one check; a check that takes longer fails.
	ProbeTimeout time.Duration
}

// DefaultConfig fits the 30 s that Kubernetes grants unless told otherwise.
func DefaultConfig() Config {
	return Config{
		GracePeriod:   30 * time.Second,
		DrainNotice:   3 * time.Second,
		DrainGrace:    10 * time.Second,
		SettleTimeout: 8 * time.Second,
		LeaveTimeout:  5 * time.Second,
		ProbeInterval: 100 * time.Millisecond,
		ProbeTimeout:  time.Second,
	}
}

// setting is one duration of a Config under its name in the configuration file.
type setting struct {
	name     string
	value    time.Duration
	zeroFits bool
	inTheSum bool
}

func (c Config) settings() []setting {
	return []setting{
		{name: "lifecycle.gracePeriod", value: c.GracePeriod},
		{name: "drain.notice", value: c.DrainNotice, zeroFits: true, inTheSum: true},
		{name: "drain.grace", value: c.DrainGrace, inTheSum: true},
		{name: "settle.timeout", value: c.SettleTimeout, inTheSum: true},
		{name: "lifecycle.leaveTimeout", value: c.LeaveTimeout, inTheSum: true},
		{name: "lifecycle.minReady", value: c.MinReady, zeroFits: true},
		{name: "lifecycle.probeInterval", value: c.ProbeInterval},
		{name: "lifecycle.probeTimeout", value: c.ProbeTimeout},
	}
}

// Validate reports every fault, joined; each is a [*ConfigError]. Among them:
// the bounds of the shutdown do not fit the grace period, with all the parts.
func (c Config) Validate() error {
	var faults []error
	var sum time.Duration
	var parts []string
	for _, s := range c.settings() {
		switch {
		case s.value < 0:
			faults = append(faults, &ConfigError{s.name, s.value, "must not be negative"})
		case s.value == 0 && !s.zeroFits:
			faults = append(faults, &ConfigError{s.name, s.value, "must be more than 0"})
		}
		if s.inTheSum {
			sum += s.value
			parts = append(parts, fmt.Sprintf("%s %v", s.name, s.value))
		}
	}
	if sum += shutdownSteps * Slack; sum > c.GracePeriod {
		faults = append(faults, &ConfigError{"lifecycle.gracePeriod", c.GracePeriod, fmt.Sprintf(
			"a shutdown may take %v: %s, and %v of slack for each step",
			sum, strings.Join(parts, " + "), Slack)})
	}
	return errors.Join(faults...)
}
