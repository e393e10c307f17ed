package counter

import (
	"testing"
	"time"
)

func TestLimitChangeStories(t *testing.T) {
	t.Run("sliding", func(t *testing.T) { // case 21
		tell(t, "100-M", []step{
			{0, spend(50), 50, 0, 0},
			{time.Second, edit("20-M"), 0, 1, 61 * time.Second}, // not -30
			{time.Second, edit("200-M"), 150, 0, 0},
			{61 * time.Second, look, 200, 0, 0},
		})
	})
	t.Run("fixed", func(t *testing.T) {
		tell(t, "10-H fixed", []step{
			{0, spend(10), 0, 1, time.Hour},
			{time.Minute, edit("20-H fixed"), 10, 11, time.Hour},
			{time.Minute, edit("5-H fixed"), 0, 1, time.Hour},
		})
	})
	t.Run("token bucket", func(t *testing.T) {
		tell(t, "10-S token-bucket", []step{
			{0, spend(10), 0, 1, 100 * ms},
			{0, edit("2-S token-bucket burst=4"), 0, 1, 3500 * ms},
			{0, edit("20-S token-bucket burst=30"), 20, 21, 50 * ms},
		})
	})
	t.Run("a rate that is taken out and put back", func(t *testing.T) {
		tell(t, "10-S,5-M", []step{
			{0, spend(4), 1, 0, 0},
			{time.Second, edit("10-S"), 6, 0, 0},
			{2 * time.Second, spend(6), 4, 0, 0},
			{3 * time.Second, edit("10-S,5-M"), 1, 0, 0}, // only the 4 of when it was in force
		})
	})
	t.Run("reset", func(t *testing.T) {
		tell(t, "10-S,5-M", []step{{0, spend(5), 0, 0, 0}, {0, reset, 5, 5, now}})
	})
}
