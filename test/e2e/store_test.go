package e2e

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/test/cluster"
)

// kept is a record of the counters' bucket as any client of NATS sees it.
type kept struct {
	key     string
	ttl     time.Duration // 0 when there is none
	expires time.Time
	text    string
}

// records reads all records of the counters' bucket.
func records(t *testing.T, c *cluster.Cluster) []kept {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stream, err := c.JetStream().Stream(ctx, cluster.CountersStream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		t.Fatal(err)
	}
	var all []kept
	for subject := range info.State.Subjects {
		m, err := stream.GetLastMsgForSubject(ctx, subject)
		if err != nil {
			t.Fatalf("read a record: %v", err)
		}
		all = append(all, keptOf(t, m))
	}
	return all
}

func keptOf(t *testing.T, m *jetstream.RawStreamMsg) kept {
	t.Helper()
	k := kept{key: strings.TrimPrefix(m.Subject, "$KV.headgate_counters."), text: string(m.Data)}
	if text := m.Header.Get("Nats-TTL"); text != "" {
		ttl, err := time.ParseDuration(text)
		if seconds, e := strconv.Atoi(text); e == nil {
			ttl, err = time.Duration(seconds)*time.Second, nil
		}
		if err != nil {
			t.Fatalf("TTL %q: %v", text, err)
		}
		k.ttl, k.expires = ttl, m.Time.Add(ttl)
	}
	return k
}

// The bucket through the client library: every record expires, between its
// window and twice the window and 5 s, and no subject stands in clear in a key
// or a value.
func TestStoreRecordsExpireAndHideSubjects(t *testing.T) {
	t.Parallel()
	policies := []struct {
		policy cluster.Policy
		window time.Duration
	}{
		{cluster.Policy{Rates: "10-M", Subject: "5-M"}, time.Minute},
		{cluster.Policy{Rates: "10-H", Subject: "5-H"}, time.Hour},
		{cluster.Policy{Rates: "10-D", Subject: "5-D"}, 24 * time.Hour},
	}
	opts := cluster.Options{Shape: cluster.External, Nodes: 1}
	for _, p := range policies {
		opts.Policies = append(opts.Policies, p.policy)
	}
	c := cluster.Start(t, opts)
	for _, p := range policies {
		k := c.Fresh(p.policy)
		k.Spend(3)
		c.AwaitSettled()
		found := 0
		for _, r := range records(t, c) {
			for _, part := range k.Marks[1:] { // an account stands in clear
				if strings.Contains(r.key+r.text, part) {
					t.Errorf("a subject stands in clear in %q", r.key)
				}
			}
			if !strings.HasPrefix(r.key, p.policy.Function()+".") {
				continue
			}
			found++
			if r.ttl < p.window || r.ttl > 2*p.window+5*time.Second {
				t.Errorf("%s: TTL %v, want %v to %v", r.key, r.ttl, p.window, 2*p.window+5*time.Second)
			}
		}
		if found != 2 {
			t.Errorf("%d records of %s, want one of the account and one of the subject", found, p.policy.Function())
		}
	}
}

// A reviewer's item: a counter's remaining time to live is preserved by
// settlement and by replacement of the node that wrote it, not merely present.
func TestReviewRemainingTimeToLiveIsPreserved(t *testing.T) {
	t.Parallel()
	const window, slack = 15 * time.Second, 2 * time.Second
	policy := cluster.Policy{Rates: "[{units: 10, period: 15s, algorithm: fixed}]"}
	c := cluster.Start(t, cluster.Options{Shape: cluster.External, Policies: []cluster.Policy{policy}})
	k := c.Fresh(policy)
	opened := time.Now()
	k.WantAdmitted(12, 10)
	first := onlyRecord(t, c)

	replaceTogether(c.Nodes()) // each settles as it leaves
	c.AwaitReady()
	after := onlyRecord(t, c)
	if shift := after.expires.Sub(first.expires); shift < -slack || shift > slack {
		t.Errorf("the record's end moved by %v when the nodes were replaced", shift)
	}
	if left := after.expires.Sub(opened); left < window {
		t.Errorf("the record goes after %v, before its window of %v is over", left, window)
	}
	// The window closes when it was to close, whoever answers.
	a := k.Check(c.Node(1), cluster.HTTP)
	if a.Allowed || a.RetryAfter == nil {
		t.Fatalf("the window of %v gave a fresh budget after %v", window, time.Since(opened))
	}
	closes := time.Since(opened) + time.Duration(*a.RetryAfter*float64(time.Second))
	if closes < window-slack || closes > window+slack {
		t.Errorf("the window closes %v after it opened, want %v", closes, window)
	}
}

// onlyRecord is the one record of the counters' bucket.
func onlyRecord(t *testing.T, c *cluster.Cluster) kept {
	t.Helper()
	all := records(t, c)
	if len(all) != 1 {
		t.Fatalf("%d records, want 1", len(all))
	}
	return all[0]
}
