package counter_test

import (
	"fmt"
	"time"

	"github.com/headgate-io/headgate/ratelimit/counter"
)

func Example() {
	rates, err := counter.ParseRates("3-M, 5-H")
	if err != nil {
		fmt.Println(err)
		return
	}
	now := counter.InstantOf(time.Date(2026, 8, 24, 12, 0, 0, 0, time.UTC))

	var c counter.Counter
	for range 4 {
		if c.Available(rates, now) < 1 {
			i, next, _ := c.Limiting(rates, now, 1)
			fmt.Printf("denied by %s for %s\n", rates[i], next.Sub(now))
			break
		}
		c.Charge(rates, 1, now, now)
		fmt.Println("admitted, left", c.Available(rates, now))
	}
	// Output:
	// admitted, left 2
	// admitted, left 1
	// admitted, left 0
	// denied by 3-M for 1m1s
}

func ExampleCounter_Charge() {
	rates := []counter.Rate{{Units: 100, Period: time.Minute}}
	now := counter.InstantOf(time.Date(2026, 8, 24, 12, 0, 0, 0, time.UTC))

	// A lease of 30 units; 20 of them are spent, the rest comes back.
	var c counter.Counter
	until := c.LeaseEnd(rates, now, 100*time.Millisecond)
	c.Charge(rates, 30, now, until)
	c.Refund(rates, 10, until, until)
	fmt.Println("left", c.Available(rates, now))
	// Output: left 80
}

func ExampleParseRates() {
	rates, err := counter.ParseRates("10-s, 100/30s fixed, 8-S")
	fmt.Println(rates, err)
	_, err = counter.ParseRates("10-S, 1.5-M")
	fmt.Println(err)
	// Output:
	// [8-S 100/30s fixed] <nil>
	// rate "1.5-M": units must be a whole number from 0 to 9007199254740992
}
