package main

import (
	"bytes"
	"context"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/headgate-io/headgate/invocation/nvcfpb"
)

// Who calls, in letters that nothing else spells.
const (
	secretCaller  = "zqcaller"
	secretAccount = "zqaccount"
)

// allTiers is a policy of each consistency that counts by everything, with a
// contract for the account.
const allTiers = `
function: leased
total: {rates: 100-H}
account: {rates: 5-H, overrides: {zqaccount: 4-H}, exclude: [zqaccounttoo]}
subject: {rates: 2-H}
---
function: exact
consistency: exact
account: {rates: 3-H}
subject: {rates: 2-H}
---
function: delayed
consistency: delayed
onStoreFailure: deny
account: {rates: 3-H}
subject: {rates: 2-H}
`

// Whatever a node goes through, at its most talkative, no caller and no account
// is in its log, in its metrics or in what fails; the store knows accounts in
// clear and callers only as hashes.
func TestServe_tellsNobodyWhoCalls(t *testing.T) {
	t.Parallel()
	nats := startNATS(t)
	policies := policyFile(t, allTiers)
	args := []string{"--nats-url", nats.url, "--nats-replicas=1", "--log-level=debug", "--policies", policies}
	n := startNode(t, args...)
	n.busy()
	n.operated()
	metrics := n.allMetrics()

	// A faulty policy is told of, and the one before stays in force.
	if err := os.WriteFile(policies, []byte(strings.ReplaceAll(allTiers, "4-H", "many-H")), 0o600); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, patience, func() bool { return n.metric(`headgate_policy_errors_total{source="file"}`) == "1" },
		func() string { return "the faulty policy was not told of" })

	nats.kill()
	waitUntil(t, patience, func() bool {
		n.busy()
		_, body := n.get("/readyz")
		return strings.Contains(body, `"degraded":true`)
	}, func() string { return "not degraded" })
	n.busy()
	metrics += n.allMetrics()
	nats.start(t)
	waitUntil(t, patience, func() bool { return n.metric("headgate_degraded") == "0" }, func() string { return "still degraded" })
	n.busy()
	n.settled()
	metrics += n.allMetrics()
	n.stop()
	nats.stop()

	for what, text := range map[string]string{"log": n.said(), "metrics": metrics, "NATS server's log": nats.said()} {
		wantPrivate(t, what, text, secretCaller, secretAccount)
	}
	stored := filesBelow(t, nats.dir)
	wantPrivate(t, "store", stored, secretCaller)
	if !strings.Contains(stored, secretAccount) {
		t.Error("the store's files do not hold the account: is this where counters are kept?")
	}
}

// wantPrivate wants none of the names in a text, and shows where they are.
func wantPrivate(t *testing.T, what, text string, names ...string) {
	t.Helper()
	for _, name := range names {
		if at := strings.Index(text, name); at >= 0 {
			t.Errorf("%s: %q in …%q…", what, name, text[max(0, at-200):min(len(text), at+100)])
		}
	}
}

// busy makes calls that are admitted, denied, refused and not understood, over
// every front door.
func (n *node) busy() {
	n.t.Helper()
	for _, function := range []string{"leased", "exact", "delayed", "unlimited"} {
		for _, caller := range []string{secretCaller, secretCaller + "\n", strings.Repeat(secretCaller, 50)} {
			_, _ = nvcfpb.NewRateLimitServiceClient(n.dial()).RateLimit(context.Background(), &nvcfpb.RateLimitRequest{
				NcaId: secretAccount, FunctionId: function, FunctionVersionId: "v1", ClientAuthSubject: caller,
			})
			n.post("/v1/check", `{"account":"`+secretAccount+`","function":"`+function+`","version":"v1","subject":"`+strings.TrimSpace(caller)+`"}`)
			n.post("/v1/check", `{"account":"`+secretAccount+`","function":"`+function+`","cost":-1,"`+secretCaller+`":1`)
			req, err := http.NewRequest(http.MethodGet, "http://"+n.http+"/v1/authorize", nil)
			if err != nil {
				n.t.Fatal(err)
			}
			req.Header = http.Header{
				"X-Headgate-Account": {secretAccount}, "X-Headgate-Function": {function},
				"X-Headgate-Version": {"v1"}, "X-Headgate-Subject": {strings.TrimSpace(caller)},
			}
			n.ask(req)
		}
	}
	n.post("/"+secretAccount+"/"+secretCaller, "")
}

// operated looks at counters and changes them, rightly and wrongly.
func (n *node) operated() {
	n.t.Helper()
	const who = " --function leased --version v1 --account " + secretAccount
	for _, args := range []string{
		"counter ls --function leased", "counter get --subject " + secretCaller + who, "counter reset" + who,
		"counter reset --subject " + secretCaller + who, "counter grant --units 1" + who, "counter get " + secretCaller,
	} {
		_, stdout, stderr := headgate(n.t, n.adminEnv(), strings.Fields(args)...)
		if !strings.Contains(args, "get "+secretCaller) { // there it is the operator's own word
			wantPrivate(n.t, args, stdout+stderr, secretCaller)
		}
	}
	for _, stdin := range []string{
		"function: own\naccount: {overrides: {zqaccount: 5-H}}\n", "function: own\naccount: {overrides: {zqaccount: 6-H}}\n",
	} {
		if code, _, stderr := headgateIn(n.t, stdin, n.adminEnv(), "policy", "apply", "-f", "-"); code != exitOK {
			n.t.Errorf("policy apply: %s", stderr)
		}
	}
	req, err := http.NewRequest(http.MethodPut, "http://"+n.admin+"/v1/policies/own/*", strings.NewReader("account: {overrides: {zqaccount: much}}"))
	if err != nil {
		n.t.Fatal(err)
	}
	n.ask(req)
	n.ask(mustRequest(n.t, "http://"+n.admin+"/v1/counters/"+secretCaller))
}

func mustRequest(t *testing.T, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func (n *node) post(path, body string) {
	n.t.Helper()
	req, err := http.NewRequest(http.MethodPost, "http://"+n.http+path, strings.NewReader(body))
	if err != nil {
		n.t.Fatal(err)
	}
	n.ask(req)
}

// ask makes a request whose answer does not matter.
func (n *node) ask(req *http.Request) {
	n.t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	_ = resp.Body.Close()
}

func (n *node) allMetrics() string {
	n.t.Helper()
	_, text := n.get("/metrics")
	return text
}

// filesBelow is the contents of all files of a directory, and their names.
func filesBelow(t *testing.T, dir string) string {
	t.Helper()
	var all bytes.Buffer
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all.WriteString(path)
		all.Write(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
