package chart

import (
	"strings"
	"testing"
)

// Names that are too long are cut, and stay different where they were.
func TestLongNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 50) // helm takes release names of up to 53
	for _, values := range []string{
		"insecure: true", beside,
		"{insecure: true, nameOverride: " + strings.Repeat("n", 63) + "}",
		"{insecure: true, fullnameOverride: " + strings.Repeat("f", 70) + "}",
		"{insecure: true, nats: {url: 'nats://n'}, fullnameOverride: " + strings.Repeat("f", 42) + "-" + strings.Repeat("g", 30) + "}",
	} {
		first := release{name: long + "aaa", values: []string{values}}.render(t)
		checkObjects(t, first)
		second := release{name: long + "aab", values: []string{values}}.render(t)
		if strings.Contains(values, "fullnameOverride") {
			continue // the names are the user's, and the same
		}
		checkApart(t, first, second)
	}
}

// Two releases in one namespace share nothing: no name, no pod, no secret.
func TestTwoReleasesInOneNamespace(t *testing.T) {
	t.Parallel()
	for _, values := range []string{"insecure: true", beside} {
		checkApart(t,
			release{name: "one", values: []string{values}}.render(t),
			release{name: "two", values: []string{values}}.render(t))
		checkApart(t,
			release{name: "headgate", values: []string{values}}.render(t),
			release{name: "headgate-2", values: []string{values}}.render(t))
	}
}

func checkApart(t *testing.T, a, b objects) {
	t.Helper()
	taken := map[string]bool{}
	for _, o := range a {
		taken[o.kind+" "+o.meta.GetName()] = true
	}
	for _, o := range b {
		if taken[o.kind+" "+o.meta.GetName()] {
			t.Errorf("both have a %s %s", o.kind, o.meta.GetName())
		}
	}
	first, second := workloadOf(t, a), workloadOf(t, b)
	if selects(first.selector, second.template.Labels) || selects(second.selector, first.template.Labels) {
		t.Error("one release selects the pods of the other")
	}
}

// A name that a Service cannot have is refused, with the way out.
func TestReleaseNamesThatServicesCannotHave(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"1st", "a.b"} {
		why := release{name: name, values: []string{"insecure: true"}}.refused(t)
		if !strings.Contains(why, "fullnameOverride") {
			t.Errorf("release %q is refused without a way out: %s", name, why)
		}
		release{name: name, values: []string{"{insecure: true, fullnameOverride: limiter}"}}.render(t)
	}
}
