package ratelimit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

const (
	storeHere     = storetest.Here
	storeRefusing = storetest.Refusing
	storeSilent   = storetest.Silent
)

// reset frees an account's counter in the store, behind the nodes' backs.
func (w *world) reset(account string) {
	w.t.Helper()
	key, _ := w.keys.Key(ratelimit.Account, "f", ratelimit.Any, account, "")
	if _, err := w.store.Exchange(context.Background(), ratelimit.Exchange{Key: key, Rates: rates(w.t, "10-H"), Reset: true, Node: "operator", Serial: 1}); err != nil {
		w.t.Fatal(err)
	}
}

// Three nodes without the store admit together what was left, and what they
// admitted is charged when it returns.
func TestAway_nodesShareWhatWasLeft(t *testing.T) {
	for _, text := range []string{"90-H", "90/1h fixed", "90/1h token-bucket"} {
		for _, c := range consistencies {
			t.Run(text+"/"+c.String(), func(t *testing.T) {
				inWorld(t, 3, func(w *world) {
					inv := ratelimit.Invocation{Account: "acme"}
					w.want("before", w.spend(30, inv), 30)
					settle()
					for i := range w.nodes { // every node knows the counter
						w.ask(i, ratelimit.Invocation{Account: "acme"})
					}
					w.store.SetAway(storeSilent)
					away := 0
					if c == ratelimit.Delayed { // it learns of it at its next sync
						away = w.spend(3, inv)
						time.Sleep(time.Second)
					}
					away += w.spend(300, inv)
					if away < 50 || away > 60 {
						t.Errorf("%d admitted without the store, want the 60 that were left", away)
					}
					w.store.SetAway(storeHere)
					settle()
					if used := int(w.used(ratelimit.Account, text, "acme", "")); used < 30+away-1 || used > 30+away {
						t.Errorf("%d charged after the store returned, want %d", used, 30+away)
					}
					if admitted := 30 + away + w.spend(300, inv); admitted > 90+1 {
						t.Errorf("%d admitted in all, want no more than 90", admitted)
					}
				}, perAccount(t, text, c))
			})
		}
	}
}

func TestAway_policiesDecide(t *testing.T) {
	for _, tt := range []struct {
		failure  ratelimit.Failure
		admitted int
	}{{ratelimit.FailAllow, 20}, {ratelimit.FailDeny, 0}, {ratelimit.FailLocal, 10}} {
		t.Run(tt.failure.String(), func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				w.store.SetAway(storeRefusing)
				w.want("admitted of 20", w.spend(20, ratelimit.Invocation{Account: "acme"}), tt.admitted)
				d := w.ask(0, ratelimit.Invocation{Account: "acme", Cost: 1})
				if !d.Degraded {
					t.Errorf("%+v is not marked degraded", d)
				}
				if !d.Allowed() && d.RetryAfter <= 0 {
					t.Errorf("%+v does not say when to ask again", d)
				}
			}, policy(func(p *ratelimit.Policy) { p.Account, p.OnStoreFailure = rates(t, "10-H"), tt.failure }))
		})
	}
}

// No invocation waits longer than its bound, and none waits once the breaker is
// open.
func TestAway_nobodyWaitsLongerThanTheBound(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.store.SetAway(storeSilent)
		bound := ratelimit.DefaultConfig().Attempt
		for i := range 200 {
			start := time.Now()
			w.ask(0, ratelimit.Invocation{Account: string(rune('a' + i)), Cost: 1})
			waited := time.Since(start)
			if waited > bound {
				t.Fatalf("call %d waited %v, more than %v", i, waited, bound)
			}
			if i > 5 && waited > 0 {
				t.Fatalf("call %d waited %v although the store is known to be away", i, waited)
			}
			time.Sleep(time.Millisecond)
		}
		w.store.SetAway(storeHere)
		time.Sleep(time.Second)
		if w.nodes[0].Degraded() {
			t.Error("still degraded a second after the store returned")
		}
	}, perAccount(t, "10-H", ratelimit.Leased))
}

// Case 19: what was admitted in a window that closed while the store was away
// is not charged to the window after it.
func TestCase19_aClosedWindowIsNotChargedToTheNext(t *testing.T) {
	for _, c := range consistencies {
		t.Run(c.String(), func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				inv := ratelimit.Invocation{Account: "acme"}
				var admitted []counter.Instant
				for _, away := range []storetest.Away{storeHere, storeSilent, storeHere} {
					w.store.SetAway(away)
					admitted = append(admitted, w.offer(time.Second, 15*time.Second, inv)...)
				}
				// Windows as their first admission opens them.
				var opened counter.Instant
				n := 0
				for _, at := range admitted {
					if n == 0 || at.Sub(opened) >= 10*time.Second {
						if n > 0 && n != 5 {
							t.Errorf("the window opened at %v admitted %d, want 5", opened.Time(), n)
						}
						opened, n = at, 0
					}
					n++
				}
			}, perAccount(t, "5/10s fixed", c))
		})
	}
}

// Units that the node granted itself go back, since another tier denied, while
// the exchange that posts them is under way: they are charged to nobody in the
// end, whatever becomes of that exchange.
func TestAway_whatGoesBackWhileItIsPostedIsNotCharged(t *testing.T) {
	for name, loss := range map[string]storetest.Loss{"refused": storetest.RefusedRequest, "answer lost": storetest.LostAnswer} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				var away atomic.Bool
				w.store = storetest.NewMemory(w.clock, storetest.WithFaults(func(x ratelimit.Exchange) storetest.Fault {
					switch {
					case !away.Load():
						return storetest.Fault{}
					case len(x.Posts) > 0:
						return storetest.Fault{Before: 30 * time.Millisecond, After: 30 * time.Millisecond, Loss: loss}
					}
					return storetest.Fault{Loss: storetest.RefusedRequest}
				}))
				w.nodes = append(w.nodes, w.node(1))
				w.want("before", w.spend(3, ratelimit.Invocation{Account: "other"}), 3)
				away.Store(true)
				// The account has enough, the total of 5 has not. While that one is
				// waited for, a look has the account's units posted.
				looked := time.AfterFunc(150*time.Millisecond, func() { w.ask(0, ratelimit.Invocation{Account: "acme"}) })
				defer looked.Stop()
				if d := w.ask(0, ratelimit.Invocation{Account: "acme", Cost: 3}); d.Allowed() || d.Tier != ratelimit.Total {
					t.Errorf("%+v, want a denial by the total", d)
				}
				away.Store(false)
				settle()
				w.want("charged", int(w.used(ratelimit.Account, "10-H", "acme", "")), 0)
			}, policy(func(p *ratelimit.Policy) {
				p.Account, p.Total, p.Consistency = rates(t, "10-H"), rates(t, "5-H"), ratelimit.Exact
			}))
		})
	}
}

// A node whose policy changes while the store is away keeps what it spent of its
// share.
func TestAway_anotherPolicyIsNoNewShare(t *testing.T) {
	for _, tt := range []struct {
		before, after string
		later         time.Duration
		more          int // of its share, after 10 of it
	}{
		{"30-H", "60-H", 0, 10},
		{"30/1h fixed", "60/1h fixed", 0, 10},
		{"30/1h token-bucket", "60/1h token-bucket", 0, 10},
		{"30-H", "30/1h token-bucket", 0, 0},
		{"30/30s token-bucket", "30/30s token-bucket,1000-M", 10 * time.Second, 3}, // its part of 10
	} {
		t.Run(tt.before+" to "+tt.after, func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				w.nodes = append(w.nodes, w.node(3))
				inv := ratelimit.Invocation{Account: "acme"}
				w.ask(0, inv)
				w.store.SetAway(storeRefusing)
				w.want("its share of 30", w.spend(20, inv), 10)
				time.Sleep(tt.later)
				w.policies.set(perAccount(t, tt.after, ratelimit.Exact))
				w.want("more", w.spend(30, inv), tt.more)
			}, perAccount(t, tt.before, ratelimit.Exact))
		})
	}
}

// What the others may have taken unseen comes off a share: about what they took
// lately, and less the longer they were seen to take nothing.
func TestAway_aBurstOfTheOthersIsNoPace(t *testing.T) {
	const share = (900 - 300) / 3
	for _, tt := range []struct {
		name        string
		quiet       time.Duration // in which the node sees that nobody takes anything
		unseen      time.Duration // in which it does not look
		least, most int
	}{
		{"cut off at once", 0, 0, share - 20, share},
		{"unseen for a while", 0, 500 * time.Millisecond, share - 300/3, share - 20},
		{"quiet for a moment", 200 * time.Millisecond, 500 * time.Millisecond, share - 75, share - 25},
		{"quiet for seconds", 2 * time.Second, 500 * time.Millisecond, share - 5, share},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				inv := ratelimit.Invocation{Account: "acme", Cost: 1}
				look := ratelimit.Invocation{Account: "acme"}
				w.ask(2, look)
				for range 300 { // in a little more than a sync interval
					w.ask(0, inv)
					time.Sleep(time.Second / 2500)
				}
				w.ask(2, look)
				for quiet := time.Duration(0); quiet < tt.quiet; quiet += 100 * time.Millisecond {
					time.Sleep(100 * time.Millisecond)
					w.ask(2, look)
				}
				time.Sleep(tt.unseen)
				w.store.SetAway(storeRefusing)
				var admitted int
				for range 300 {
					if w.ask(2, inv).Allowed() {
						admitted++
					}
				}
				if admitted < tt.least || admitted > tt.most {
					t.Errorf("%d admitted alone, want %d to %d", admitted, tt.least, tt.most)
				}
			}, perAccount(t, "900-H", ratelimit.Exact))
		})
	}
}

// A store that failed a node once may be answering the others, who may be taking
// all that this node saw. It takes part in what is plenty at once, and in what is
// not when it knows that the store is away.
func TestAway_theLastUnitsAreLeftToThoseWhomTheStoreAnswers(t *testing.T) {
	for _, tt := range []struct {
		what   string
		rates  string
		nodes  int
		spent  int
		share  bool // at the first failure
		admits int  // with those after it, when the store counts as away
	}{
		{"plenty is left", "100-H", 3, 40, true, 20},
		{"just half is left", "100-H", 3, 50, true, 16},
		{"less than half is left", "100-H", 3, 55, false, 15},
		{"less than half is left of the longer of two limits", "60-S,100-H", 3, 55, false, 15},
		{"nobody else is there", "100-H", 1, 70, true, 30},
	} {
		t.Run(tt.what, func(t *testing.T) {
			inWorld(t, tt.nodes, func(w *world) {
				inv := ratelimit.Invocation{Account: "acme", Cost: 1}
				w.want("admitted before", w.spend(tt.spent, inv), tt.spent)
				settle()
				for i := range w.nodes { // every node knows the counter
					w.ask(i, ratelimit.Invocation{Account: "acme"})
				}
				w.store.SetAway(storeSilent)
				d := w.ask(0, inv)
				if d.Allowed() != tt.share || !d.Degraded {
					t.Errorf("at the first failure: %+v, want allowed %v and degraded", d, tt.share)
				}
				if !d.Allowed() && (d.RetryAfter <= 0 || d.RetryAfter > time.Second) {
					t.Errorf("denied with %v to wait, want a moment", d.RetryAfter)
				}
				admitted := 0
				if d.Allowed() {
					admitted++
				}
				for range 1000 {
					time.Sleep(time.Millisecond)
					if w.ask(0, inv).Allowed() {
						admitted++
					}
				}
				w.want("admitted without the store", admitted, tt.admits)
			}, perAccount(t, tt.rates, ratelimit.Exact))
		})
	}
}

// What the others took unseen leaves a window as all does.
func TestAway_whatWasMissedIsOverWithItsWindow(t *testing.T) {
	for _, text := range []string{"900/3s", "900/3s fixed"} {
		t.Run(text, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				inv := ratelimit.Invocation{Account: "acme", Cost: 1}
				for i := range 600 { // in half a second, a third of it here
					w.ask(i%3, inv)
					time.Sleep(time.Second / 1200)
				}
				w.store.SetAway(storeRefusing)
				alone := func() (admitted int) {
					for range 400 { // until well after the store counts as away
						if w.ask(2, inv).Allowed() {
							admitted++
						}
						time.Sleep(time.Millisecond)
					}
					return admitted
				}
				if n := alone(); n < 50 || n >= 100 {
					t.Errorf("%d admitted alone, want less than the 100 that are its part of what it saw", n)
				}
				time.Sleep(3200 * time.Millisecond)
				if n := alone(); n != 300 {
					t.Errorf("%d admitted alone in the next window, want 300", n)
				}
			}, perAccount(t, text, ratelimit.Exact))
		})
	}
}

// When the store is back, a node waits with taking from it until the others
// must have posted what they admitted: it would take what they have spent.
func TestAway_nobodyTakesWhatTheOthersHaveYetToPost(t *testing.T) {
	for _, c := range consistencies {
		t.Run(c.String(), func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				inv := ratelimit.Invocation{Account: "acme"}
				admitted := w.spend(100, inv)
				settle()
				for i := range w.nodes { // every node knows the counter
					w.ask(i, ratelimit.Invocation{Account: "acme"})
				}
				w.store.SetAway(storeSilent)
				if c == ratelimit.Delayed { // it learns of it at its next sync
					admitted += w.spend(3, inv)
					time.Sleep(time.Second)
				}
				admitted += len(w.offer(time.Millisecond, 2*time.Second, inv))
				w.store.SetAway(storeHere)
				admitted += len(w.offer(time.Millisecond, 5*time.Second, inv))
				if admitted > 400 {
					t.Errorf("%d admitted in all, want no more than 400", admitted)
				}
				if d := w.ask(0, ratelimit.Invocation{Account: "acme", Cost: 1}); d.Degraded {
					t.Error("still degraded seconds after the store returned")
				}
			}, perAccount(t, "400-H", c))
		})
	}
}
