package nvcf

import (
	"strings"
	"testing"
	"time"
)

// The behaviours of the NVCF limiter one by one, by the names of its own tests
// where it has one. "same", or "better" and why: what its own clients rely on
// holds, its faults do not.
func TestBehaviours(t *testing.T) {
	t.Parallel()
	const same = "same"
	const s, m = time.Second, time.Minute
	tests := []struct {
		name, verdict, answer string
		steps                 []step
	}{
		{"testNoRateLimit", same, "", []step{{caller: "a", calls: 20, allowed: 20}}},
		{"testRateLimitForSameKey", same, "4-S", []step{{caller: "a", calls: 5, allowed: 4}}},
		{"testLimitAll", same, "0-S; not x, y", []step{{caller: "a", calls: 8, allowed: 0}, {caller: "x", calls: 8, allowed: 8}}},
		{"testWithPerNcaIdRate", same, "0-S; a: 4-S", []step{{caller: "a", calls: 5, allowed: 4}, {caller: "b", calls: 1, allowed: 0}}},
		{"testOnlyPerNcaIdRate", same, "a: 2-S", []step{{caller: "a", calls: 3, allowed: 2}, {caller: "b", calls: 20, allowed: 20}}},
		{"testPerNcaIdWithExclusions", same, "4-S; a: 2-S; not a, x", []step{
			{caller: "a", calls: 3, allowed: 2}, {caller: "x", calls: 10, allowed: 10}, {caller: "b", calls: 5, allowed: 4}}},
		{"testPerUserRateOnly", same, "user 2-M", []step{{caller: "a/A", calls: 3, allowed: 2}, {caller: "a/B", calls: 3, allowed: 2}}},
		{"testPerUserResetClearsUserCounter", same, "user 2-M", []step{
			{caller: "a/A", calls: 3, allowed: 2}, {reset: true, caller: "a/A", calls: 3, allowed: 2}}},
		{"testPerUserAndGlobalRate", same, "5-M; user 2-M", []step{{caller: "a/A", calls: 3, allowed: 2}, {caller: "a/fresh%d", calls: 4, allowed: 3}}},
		{"testPerUserRateBackwardCompat", same, "5-M; user 2-M", []step{{caller: "a", calls: 6, allowed: 5}}},
		{"testPerUserAndPerNcaIdRate", same, "100-M; user 2-M; a: 5-M", []step{
			{caller: "a/A", calls: 4, allowed: 2}, {caller: "a/fresh%d", calls: 4, allowed: 3}}},
		{"testPerUserBlockedDoesNotConsumeNcaBudget", same, "a: 5-M; user 2-M", []step{
			{caller: "a/A", calls: 5, allowed: 2}, {caller: "a/fresh%d", calls: 5, allowed: 3}}},
		{"testAllThreeTiersPerNcaIdWinsOverGlobal", same, "100-M; user 2-M; a: 3-M", []step{
			{caller: "a/A", calls: 3, allowed: 2}, {caller: "a/B", calls: 2, allowed: 1}}},
		{"testExcludedNcaStillEnforcesPerUserTier", same, "1-M; user 2-M; not x", []step{
			{caller: "x/A", calls: 3, allowed: 2}, {caller: "x/B", calls: 3, allowed: 2}, {caller: "x", calls: 20, allowed: 20}}},
		{"testRateLimitWithExemption", same, "4-S; not x", []step{{caller: "x", calls: 10, allowed: 10}}},
		{"testConstantLoad", same, "4-S", []step{{caller: "a", calls: 30, every: s / 3, allowed: 30}}},
		{"testConstantLoadTooHigh", "better: at most 4 in any second, not only in those that windows begin with", "4-S", []step{
			{caller: "a", calls: 80, every: s / 8, allowed: 36, there: new(40)}}},
		{"testRateLimitForDifferentKey", same, "4-S", []step{{caller: "acc%d", calls: 20, allowed: 20}}},
		{"a burst on both sides of a window's end", "better: at most 4 in any second", "4-S", []step{
			{caller: "a", calls: 1, allowed: 1}, {after: 900 * time.Millisecond, caller: "a", calls: 3, allowed: 3},
			{after: 200 * time.Millisecond, caller: "a", calls: 4, allowed: 1, there: new(4)}}},

		{"testUpdateRateLimitRate", same, "4-S", []step{{caller: "a", calls: 5, allowed: 4}, {change: "2-M", caller: "a", calls: 3, allowed: 2}}},
		{"testUpdateExemption", same, "4-S; not x, y", []step{
			{caller: "x", calls: 10, allowed: 10}, {change: "4-S; not y", caller: "x", calls: 5, allowed: 4}}},
		{"testUpdateRateLimitBothRateAndExemption", same, "4-S; not x", []step{
			{caller: "a", calls: 5, allowed: 4}, {change: "2-M; not a", caller: "x", calls: 3, allowed: 2}, {caller: "a", calls: 20, allowed: 20}}},
		{"testAddingRateLimitAfterwards", same, "", []step{{caller: "a", calls: 10, allowed: 10}, {change: "4-S", caller: "a", calls: 5, allowed: 4}}},
		{"testTransitionGlobalToPerNcaId", same, "4-M", []step{{caller: "a", calls: 5, allowed: 4}, {change: "a: 2-S", caller: "a", calls: 3, allowed: 2}}},
		{"testTransitionPerNcaIdToGlobal", same, "a: 2-S", []step{{caller: "a", calls: 3, allowed: 2}, {change: "4-M", caller: "a", calls: 5, allowed: 4}}},
		{"testImmediateGlobalRateChange", "better: an edited rate keeps what was spent", "4-S", []step{
			{caller: "a", calls: 4, allowed: 4}, {change: "2-S", caller: "a", calls: 3, allowed: 0, there: new(2)},
			{after: 2 * s, caller: "a", calls: 3, allowed: 2}}},
		{"testImmediatePerNcaIdRateChange", "better: the account has spent 4 of them already", "4-S", []step{
			{caller: "a", calls: 4, allowed: 4}, {change: "4-S; a: 10-S", caller: "a", calls: 10, allowed: 6, there: new(10)}}},
		{"one text, general and own (case 22)", same, "a: 5-M; 5-M", []step{
			{caller: "a", calls: 4, allowed: 4}, {caller: "b", calls: 2, allowed: 2},
			{change: "5-M; b: 5-M", caller: "a", calls: 5, allowed: 1}, {caller: "b", calls: 5, allowed: 3}}},

		{"testMultipleGlobalRates", "better: a denied call charges nothing, so the minute has 5 left and not 4", "5-S,10-M", []step{
			{caller: "a", calls: 6, allowed: 5}, {after: 2 * s, caller: "a", calls: 6, allowed: 5, there: new(4)},
			{after: 2 * s, caller: "a", calls: 3, allowed: 0}, {after: 2 * m, caller: "a", calls: 6, allowed: 5}}},
		{"testMultiplePerNcaIdRates", "better: as above", "a: 3-S,8-M", []step{
			{caller: "a", calls: 4, allowed: 3}, {after: 2 * s, caller: "a", calls: 4, allowed: 3},
			{after: 2 * s, caller: "a", calls: 4, allowed: 2, there: new(0)}}},
		{"testMultipleGlobalRatesExemption", same, "5-S,10-M; not x", []step{{caller: "x", calls: 20, allowed: 20}}},
		{"testMultiplePerNcaIdFallbackToGlobal", same, "5-S,10-M; a: 1-S", []step{{caller: "b", calls: 6, allowed: 5}}},
		{"testPerNcaIdOverrideReplacesGlobalMultiRates", same, "2-S,3-M; a: 10-S", []step{{caller: "a", calls: 11, allowed: 10}}},
		{"testPerNcaIdMultiRatesReplaceGlobalMultiRates", "better: a denied call charges nothing", "1-S,2-M; a: 4-S,6-M", []step{
			{caller: "a", calls: 5, allowed: 4}, {after: 2 * s, caller: "a", calls: 5, allowed: 2, there: new(1)}}},
		{"testUnorderedMultipleRates", same, "10-M,5-S", []step{{caller: "a", calls: 6, allowed: 5}}},
		{"testTransitionSingleToMulti", "better: the second's 4 stay spent", "4-S", []step{
			{caller: "a", calls: 4, allowed: 4}, {change: "5-S,10-M", caller: "a", calls: 6, allowed: 1, there: new(5)}}},
		{"testTransitionMultiToSingle", "better: as above", "4-S,10-M", []step{
			{caller: "a", calls: 4, allowed: 4}, {change: "5-S", caller: "a", calls: 6, allowed: 1, there: new(5)}}},
		{"testTransitionMultiToMulti", "better: as above", "4-S,10-M", []step{
			{caller: "a", calls: 4, allowed: 4}, {change: "6-S,20-H", caller: "a", calls: 7, allowed: 2, there: new(6)}}},
		{"DuplicatePeriodKeepsStricter", same, "5-S,4-S", []step{{caller: "a", calls: 5, allowed: 4}}},

		{"a rate that cannot be read", "same, but counted as unlimited by failure and told", "garbage", []step{{caller: "a", calls: 20, allowed: 20}}},
		{"a part that cannot be read", "same, but told", "5-S,garbage", []step{{caller: "a", calls: 6, allowed: 5}}},
		{"an account's rate that cannot be read", "same, but told", "2-H; a: x", []step{{caller: "a", calls: 3, allowed: 2}}},
		{"a caller's rate that cannot be read", "same, but told", "2-H; user x", []step{{caller: "a/A", calls: 3, allowed: 2}}},
	}
	for _, tt := range tests {
		for _, nodes := range []int{1, 3} {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, tt.answer, nodes)
				for i, s := range tt.steps {
					if got := b.run(t, s); got != s.allowed {
						t.Errorf("%d nodes, step %d %+v: %d allowed, want %d", nodes, i, s, got, s.allowed)
					}
					if s.there != nil && strings.HasPrefix(tt.verdict, same) {
						t.Errorf("step %d differs, the verdict says %q", i, tt.verdict)
					}
				}
			})
		}
	}
}

// testPolicyCacheGrpcCallOptimization: five accounts of one version are one
// question.
func TestBehaviours_oneQuestion(t *testing.T) {
	t.Parallel()
	a := startAPI(t, "", limits("4-S"))
	s, _ := start(t, a.address, longTTL)
	for range 5 {
		units(s)
	}
	if n := a.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
