package sim

import (
	"strings"
	"testing"

	"github.com/headgate-io/headgate/ratelimit"
)

// tamper breaks the store on purpose, between the nodes and it.
type tamper struct {
	ask func(*ratelimit.Exchange)
	say func(ratelimit.Exchange, *ratelimit.Grant)
}

func (t tamper) request(x ratelimit.Exchange) ratelimit.Exchange {
	if t.ask != nil {
		t.ask(&x)
	}
	return x
}

func (t tamper) answer(x ratelimit.Exchange, g ratelimit.Grant) ratelimit.Grant {
	if t.say != nil {
		t.say(x, &g)
	}
	return g
}

// TestSimulation_notices breaks the store in one way at a time. A simulation
// that stays silent checks nothing.
func TestSimulation_notices(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name   string
		broken tamper
		want   string // in what is reported
	}{
		{"more is granted than charged", tamper{say: func(x ratelimit.Exchange, g *ratelimit.Grant) {
			g.Units += int64(len(x.Needs))
		}}, "the limit is"},
		{"charges get lost", tamper{ask: func(x *ratelimit.Exchange) { x.Reset = x.Serial%7 == 0 }}, "the limit is"},
		{"posts get lost", tamper{ask: func(x *ratelimit.Exchange) { x.Posts = nil }}, "forgotten"},
		{"returns get lost", tamper{ask: func(x *ratelimit.Exchange) { x.Returns = nil }}, "kept"},
		{"an old state is shown", tamper{say: func(_ ratelimit.Exchange, g *ratelimit.Grant) {
			g.State.Reset()
		}}, "could not be known"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const tries = 150
			for seed := range uint64(tries) {
				reported := strings.Join(playSeed(t, seed, c.broken).faults, "\n")
				if strings.Contains(reported, c.want) {
					return
				}
			}
			t.Errorf("%d seeds and nobody said %q", tries, c.want)
		})
	}
}
