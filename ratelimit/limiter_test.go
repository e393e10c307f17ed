package ratelimit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/headgate-io/headgate/ratelimit"
	"github.com/headgate-io/headgate/ratelimit/counter"
	"github.com/headgate-io/headgate/ratelimit/storetest"
)

func perAccount(t *testing.T, text string, c ratelimit.Consistency) *ratelimit.Policy {
	return policy(func(p *ratelimit.Policy) { p.Account, p.Consistency = rates(t, text), c })
}

var consistencies = []ratelimit.Consistency{ratelimit.Leased, ratelimit.Exact, ratelimit.Delayed}

func TestDecide_aSmallLimitIsExactInEveryMode(t *testing.T) {
	for _, c := range consistencies {
		t.Run(c.String(), func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				inv := ratelimit.Invocation{Account: "acme"}
				w.want("admitted of 15", w.spend(15, inv), 10)
				d := w.ask(0, ratelimit.Invocation{Account: "acme", Cost: 1})
				if d.Outcome != ratelimit.Denied || d.Tier != ratelimit.Account || d.Rate.String() != "10-H" {
					t.Errorf("denial = %+v, want it to name the account's 10-H", d)
				}
				if d.RetryAfter < 59*time.Minute || d.RetryAfter > 62*time.Minute {
					t.Errorf("retry after %v, want about an hour", d.RetryAfter)
				}
				settle()
				w.want("charged", int(w.used(ratelimit.Account, "10-H", "acme", "")), 10)
				w.want("another account", w.spend(1, ratelimit.Invocation{Account: "other"}), 1)
			}, perAccount(t, "10-H", c))
		})
	}
}

// RetryAfter is exact: a nanosecond earlier is still denied.
func TestDecide_retryAfterIsExact(t *testing.T) {
	for _, text := range []string{"10-M", "10/1m fixed", "10/1m token-bucket"} {
		t.Run(text, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				inv := ratelimit.Invocation{Account: "acme", Cost: 1}
				w.spend(10, inv)
				d := w.ask(0, inv)
				time.Sleep(d.RetryAfter - time.Nanosecond)
				if w.ask(0, inv).Allowed() {
					t.Errorf("admitted a nanosecond before RetryAfter")
				}
				time.Sleep(time.Nanosecond)
				if d := w.ask(0, inv); !d.Allowed() {
					t.Errorf("denied at RetryAfter: %+v", d)
				}
			}, perAccount(t, text, ratelimit.Exact))
		})
	}
}

func TestDecide_costs(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		ask := func(cost int64) ratelimit.Decision {
			return w.ask(0, ratelimit.Invocation{Account: "acme", Cost: cost})
		}
		steps := []struct {
			cost      int64
			outcome   ratelimit.Outcome
			remaining int64
			why       string
		}{
			{0, ratelimit.Admitted, 10, "looking is free"},
			{4, ratelimit.Admitted, 6, "a cost of several is charged whole"},
			{7, ratelimit.Denied, 6, "too much now, and nothing is charged"},
			{6, ratelimit.Admitted, 0, "the rest"},
			{11, ratelimit.Impossible, 0, "never"},
			{0, ratelimit.Denied, 0, "looking says that a call would be denied"},
		}
		for i, s := range steps {
			d := ask(s.cost)
			if d.Outcome != s.outcome || d.Remaining != s.remaining {
				t.Errorf("step %d (%s): %v with %d remaining, want %v with %d", i, s.why, d.Outcome, d.Remaining, s.outcome, s.remaining)
			}
			if (d.RetryAfter > 0) != (s.outcome == ratelimit.Denied) {
				t.Errorf("step %d (%s): retry after %v", i, s.why, d.RetryAfter)
			}
		}
	}, perAccount(t, "10-H", ratelimit.Exact))
}

func TestDecide_zeroUnitsDenyAll(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.want("admitted", w.spend(8, ratelimit.Invocation{Account: "acme"}), 0)
		d := w.ask(0, ratelimit.Invocation{Account: "acme", Cost: 1})
		if d.Outcome != ratelimit.Impossible || d.RetryAfter != 0 {
			t.Errorf("%+v, want impossible without RetryAfter", d)
		}
	}, perAccount(t, "0-S", ratelimit.Leased))
}

func TestDecide_refusesWhatItCannotDecide(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		for field, inv := range map[string]ratelimit.Invocation{
			"function": {Account: "acme", Cost: 1},
			"account":  {Function: "f", Cost: 1},
			"cost":     {Function: "f", Account: "acme", Cost: -1},
		} {
			_, err := w.nodes[0].Decide(w.t.Context(), inv)
			var fault *ratelimit.FieldError
			if !errors.Is(err, ratelimit.ErrInvalid) || !errors.As(err, &fault) || fault.Field != field || !strings.HasPrefix(err.Error(), field+": ") {
				t.Errorf("%s: error %v, want it to name the field", field, err)
			}
		}
	}, perAccount(t, "10-H", ratelimit.Leased))
}

func TestDecide_withoutAPolicyNothingLimits(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		d := w.ask(0, ratelimit.Invocation{Cost: 1})
		if !d.Allowed() || d.Remaining != ratelimit.Unlimited || d.Degraded {
			t.Errorf("%+v, want admitted and unlimited", d)
		}
	})
}

func TestDecide_notEnforcedIsDecidedAndAdmitted(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.want("admitted", w.spend(5, ratelimit.Invocation{Account: "acme"}), 5)
		d := w.ask(0, ratelimit.Invocation{Account: "acme", Cost: 1})
		if d.Outcome != ratelimit.Denied || !d.Allowed() {
			t.Errorf("%+v, want denied by the counter and allowed", d)
		}
	}, policy(func(p *ratelimit.Policy) { p.Account, p.Shadow = rates(t, "2-H"), true }))
}

// Case 9: a caller who is denied must not charge its account.
func TestCase9_denialsChargeNothing(t *testing.T) {
	for _, c := range []ratelimit.Consistency{ratelimit.Leased, ratelimit.Exact} {
		t.Run(c.String(), func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.want("A, of 8", w.spend(8, ratelimit.Invocation{Account: "acme", Subject: "A"}), 3)
				others := 0
				for i := range 8 {
					others += w.spend(1, ratelimit.Invocation{Account: "acme", Subject: string(rune('a' + i))})
				}
				w.want("others, of 8", others, 7)
				settle()
				w.want("the account's counter", int(w.used(ratelimit.Account, "10-M", "acme", "")), 10)
				w.want("the denied caller's counter", int(w.used(ratelimit.Subject, "3-M", "acme", "h")), 0)
			}, policy(func(p *ratelimit.Policy) {
				p.Subject, p.Account, p.Consistency = rates(t, "3-M"), rates(t, "10-M"), c
			}))
		})
	}
}

// Case 10: several rates, and the answer names the one that denied.
func TestCase10_theDenyingRateIsNamed(t *testing.T) {
	for _, text := range []string{"10-S,100-M", "100-M,10-S"} {
		inWorld(t, 1, func(w *world) {
			inv := ratelimit.Invocation{Account: "acme", Cost: 1}
			w.want("first second", w.spend(12, inv), 10)
			if d := w.ask(0, inv); d.Rate.String() != "10-S" {
				t.Errorf("denied by %s, want 10-S", d.Rate)
			}
			time.Sleep(1100 * time.Millisecond)
			w.want("the minute", 10+len(w.offer(time.Second/8, 15*time.Second, inv)), 100)
			if d := w.ask(0, inv); d.Rate.String() != "100-M" {
				t.Errorf("denied by %s, want 100-M", d.Rate)
			}
		}, perAccount(t, text, ratelimit.Leased))
	}
}

// Case 12: many workers, and exactly the limit.
func TestCase12_manyWorkersExactlyTheLimit(t *testing.T) {
	for _, c := range []ratelimit.Consistency{ratelimit.Leased, ratelimit.Exact} {
		for _, nodes := range []int{1, 3} {
			inWorld(t, nodes, func(w *world) {
				for run := range 10 {
					account := string(rune('a' + run))
					var admitted, next atomic.Int64
					var workers sync.WaitGroup
					for range 64 {
						workers.Go(func() {
							for i := next.Add(1); i <= 5000; i = next.Add(1) {
								d, err := w.nodes[int(i)%nodes].Decide(context.Background(), ratelimit.Invocation{Account: account, Function: "f", Version: "v", Cost: 1})
								if err == nil && d.Allowed() {
									admitted.Add(1)
								}
								time.Sleep(time.Millisecond)
							}
						})
					}
					workers.Wait()
					w.want("admitted of 5000 ("+c.String()+")", int(admitted.Load()), 1000)
				}
			}, perAccount(t, "1000-H", c))
		}
	}
}

// Who comes while an exchange is under way needs none of its own when that one
// tells enough: it is decided as if it had come a moment later.
func TestDecide_theExchangeUnderWayDecidesForWhoComesMeanwhile(t *testing.T) {
	const takes = 50 * time.Millisecond
	invocation := ratelimit.Invocation{Account: "a", Function: "f", Version: "v", Cost: 1}
	for _, c := range consistencies {
		t.Run(c.String(), func(t *testing.T) {
			inWorld(t, 0, func(w *world) {
				exchanges := 0
				w.store = storetest.NewMemory(w.clock, storetest.WithFaults(func(ratelimit.Exchange) storetest.Fault {
					exchanges++
					return storetest.Fault{Before: takes}
				}))
				w.nodes = append(w.nodes, w.node(1))
				began := time.Now()
				var first sync.WaitGroup
				first.Go(func() {
					if d, err := w.nodes[0].Decide(w.t.Context(), invocation); err != nil || !d.Allowed() {
						t.Errorf("the first one was not admitted: %v, %v", d.Outcome, err)
					}
				})
				time.Sleep(takes / 2)
				if w.ask(0, invocation).Allowed() {
					t.Error("a second one was admitted, the limit is 1")
				}
				if waited := time.Since(began); waited != takes {
					t.Errorf("it was told after %v, want %v: with the first", waited, takes)
				}
				first.Wait()
				w.want("exchanges", exchanges, 1)
			}, perAccount(t, "1-H", c))
		})
	}
}

// Case 22: an account moves between the general rate and an override of its
// own: what it spent stays spent, and the counters are not mixed up.
func TestCase22_anOverrideKeepsWhatWasSpent(t *testing.T) {
	general := policy(func(p *ratelimit.Policy) { p.Account = rates(t, "10-H") })
	override := policy(func(p *ratelimit.Policy) {
		p.Account = rates(t, "10-H")
		p.Overrides = map[string][]counter.Rate{"acme": rates(t, "10-H")}
	})
	inWorld(t, 2, func(w *world) {
		acme, other := ratelimit.Invocation{Account: "acme"}, ratelimit.Invocation{Account: "other"}
		w.want("acme spends", w.spend(6, acme), 6)
		w.want("other spends", w.spend(3, other), 3)
		w.policies.set(override)
		w.want("acme under its override", w.spend(10, acme), 4)
		w.policies.set(general)
		w.want("acme back under the general rate", w.spend(10, acme), 0)
		w.want("other all along", w.spend(10, other), 7)
	}, general)
}

// Case 23: two tiers with room for one each.
func TestCase23_oneRoomInTwoTiers(t *testing.T) {
	for _, c := range []ratelimit.Consistency{ratelimit.Leased, ratelimit.Exact} {
		inWorld(t, 3, func(w *world) {
			var admitted atomic.Int64
			var workers sync.WaitGroup
			for i := range 1000 {
				workers.Go(func() {
					d, err := w.nodes[i%3].Decide(context.Background(), ratelimit.Invocation{Account: "acme", Function: "f", Version: "v", Cost: 1})
					if err == nil && d.Allowed() {
						admitted.Add(1)
					}
				})
			}
			workers.Wait()
			w.want("admitted of 1000", int(admitted.Load()), 1)
			settle()
			w.want("the account's counter", int(w.used(ratelimit.Account, "1-H", "acme", "")), 1)
			w.want("the function's counter", int(w.used(ratelimit.Total, "1-H", "", "")), 1)
		}, policy(func(p *ratelimit.Policy) { p.Account, p.Total, p.Consistency = rates(t, "1-H"), rates(t, "1-H"), c }))
	}
}

// A change of another policy costs a counter nothing: its leases go on.
func TestPolicies_aChangeElsewhereEndsNoLease(t *testing.T) {
	mine := func() *ratelimit.Policy { return perAccount(t, "100000-H", ratelimit.Leased) }
	inWorld(t, 1, func(w *world) {
		w.offer(time.Millisecond, 300*time.Millisecond, ratelimit.Invocation{Account: "acme"})
		key, _ := w.keys.Key(ratelimit.Account, "f", ratelimit.Any, "acme", "")
		before, _ := w.nodes[0].Leased(key)
		exchanges := w.store.Stats().Exchanges
		w.policies.set(mine(), &ratelimit.Policy{Function: "other", Version: ratelimit.Any, Total: rates(t, "1-S")})
		w.spend(1, ratelimit.Invocation{Account: "acme"})
		if after, _ := w.nodes[0].Leased(key); after != before-1 {
			t.Errorf("%d units leased before a change elsewhere, %d after it and one call", before, after)
		}
		w.want("exchanges of the change", w.store.Stats().Exchanges-exchanges, 0)
	}, mine())
}

// A look that meets a newer policy on its way says what that one denies, and for
// how long.
func TestLook_answersByThePolicyThatTheCellHas(t *testing.T) {
	before := policy(func(p *ratelimit.Policy) { p.Account, p.Total = rates(t, "10-H"), rates(t, "10-H") })
	after := policy(func(p *ratelimit.Policy) { p.Account, p.Total = rates(t, "10-H"), rates(t, "2-H") })
	inWorld(t, 0, func(w *world) {
		slow, _ := w.keys.Key(ratelimit.Account, "f", ratelimit.Any, "acme", "")
		w.store = storetest.NewMemory(w.clock, storetest.WithFaults(func(x ratelimit.Exchange) storetest.Fault {
			if x.Key == slow {
				return storetest.Fault{Before: 50 * time.Millisecond}
			}
			return storetest.Fault{}
		}))
		w.nodes = append(w.nodes, w.node(1))
		w.want("before", w.spend(2, ratelimit.Invocation{Account: "other"}), 2)
		change := time.AfterFunc(20*time.Millisecond, func() {
			w.policies.set(after)
			w.ask(0, ratelimit.Invocation{Account: "other", Cost: 1})
		})
		defer change.Stop()
		d := w.ask(0, ratelimit.Invocation{Account: "acme"})
		if d.Outcome != ratelimit.Denied || d.Rate.String() != "2-H" || d.RetryAfter < 59*time.Minute {
			t.Errorf("%+v, want a denial by 2-H for an hour", d)
		}
	}, before)
}
