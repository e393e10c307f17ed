package chart

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate-io/headgate/lifecycle"
)

// What a pod's parts may take must fit; each rule on both sides of its edge.
func TestTimesThatFit(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, values string
		refused      string // a word of the reason; empty: it fits
	}{
		{"the sum, to the second", "terminationGracePeriodSeconds: 27", ""},
		{"a second too much", "terminationGracePeriodSeconds: 26", "a shutdown may take 27000ms"},
		{"a millisecond too much", "{terminationGracePeriodSeconds: 27, settle: {timeout: 8001ms}}", "a shutdown may take 27001ms"},
		{"minutes", "{terminationGracePeriodSeconds: 136, drain: {grace: 2m}}", "drain.grace 2m"},
		{"minutes that fit", "{terminationGracePeriodSeconds: 137, drain: {grace: 2m}}", ""},
		{"the notice, to the second", "probes: {ready: {periodSeconds: 1, failureThreshold: 2, timeoutSeconds: 1}}", ""},
		{"noticed too late", "probes: {ready: {failureThreshold: 3}}", "drain.notice=3s: ends before the ready probe has noticed, which takes 4000ms"},
		{"noticed late, and long enough", "{probes: {ready: {failureThreshold: 3}}, drain: {notice: 4s}}", ""},
		{"killed before it is out of its Service", "{probes: {live: {periodSeconds: 1, failureThreshold: 1, timeoutSeconds: 1}}}", "probes.live"},
		{"killed later", "{probes: {live: {periodSeconds: 3, failureThreshold: 1, timeoutSeconds: 1}}}", ""},
		{"killed while elections go on", "probes: {startup: {periodSeconds: 1, failureThreshold: 58}}", "probes.startup"},
		{"a minute to join", "probes: {startup: {periodSeconds: 1, failureThreshold: 59}}", ""},
		{"a minute to join, and to be ready", "{probes: {startup: {periodSeconds: 1, failureThreshold: 60}}, lifecycle: {minReady: 10s}}", "lifecycle.minReady 10s"},
		{"a probe that overlaps itself", "probes: {live: {periodSeconds: 3, timeoutSeconds: 4, failureThreshold: 3}}", "probes.live.timeoutSeconds=4"},
		{"a duration without a unit", "drain: {notice: '3'}", "/drain/notice"},
		{"nothing to settle in", "settle: {timeout: 0s}", "/settle/timeout"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := with("insecure: true", c.values)
			if c.refused == "" {
				checkProgramAgrees(t, r.render(t))
				return
			}
			if why := r.refused(t); !strings.Contains(why, c.refused) {
				t.Errorf("does not say %q: %s", c.refused, why)
			}
		})
	}
}

// checkProgramAgrees: the program is given the numbers of the pod, and would
// start with them.
func checkProgramAgrees(t *testing.T, o objects) {
	t.Helper()
	keys, w := flat("", o.config(t)), workloadOf(t, o)
	span := func(key string) time.Duration {
		d, err := time.ParseDuration(keys[key].(string))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	life := lifecycle.DefaultConfig()
	life.GracePeriod, life.MinReady, life.LeaveTimeout = span("lifecycle.gracePeriod"), span("lifecycle.minReady"), span("lifecycle.leaveTimeout")
	life.DrainNotice, life.DrainGrace, life.SettleTimeout = span("drain.notice"), span("drain.grace"), span("settle.timeout")
	if err := life.Validate(); err != nil {
		t.Errorf("the program would refuse to start: %v", err)
	}
	if grace := time.Duration(*w.template.Spec.TerminationGracePeriodSeconds) * time.Second; grace != life.GracePeriod {
		t.Errorf("the pod has %v, the program is told %v", grace, life.GracePeriod)
	}
	if w.container().Lifecycle != nil {
		t.Error("there is a hook before SIGTERM: drain.notice is for that, and the hook's time is in no sum")
	}
}

// The chart's defaults are the program's.
func TestDefaultTimesAreTheProgrammes(t *testing.T) {
	t.Parallel()
	keys, life := flat("", with("insecure: true").render(t).config(t)), lifecycle.DefaultConfig()
	for key, want := range map[string]time.Duration{
		"drain.notice": life.DrainNotice, "drain.grace": life.DrainGrace, "settle.timeout": life.SettleTimeout,
		"lifecycle.gracePeriod": life.GracePeriod, "lifecycle.minReady": life.MinReady, "lifecycle.leaveTimeout": life.LeaveTimeout,
	} {
		if got := keys[key]; got != strconv.Itoa(int(want.Seconds()))+"s" {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
}
