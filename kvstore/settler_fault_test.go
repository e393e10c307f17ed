package kvstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/headgate-io/headgate/ratelimit"
)

// lossy is a real JetStream with a wire on which the test loses what it likes.
type lossy struct {
	jetstream.JetStream
	// publish is called for every publish instead of it, with the real one.
	publish func(send func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error)
}

func (l *lossy) PublishMsg(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	return l.publish(func() (*jetstream.PubAck, error) { return l.JetStream.PublishMsg(ctx, m, opts...) })
}

// lossySettler is a settler on such a wire.
func (b *bed) lossySettler(t *testing.T, publish func(send func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error)) *settler {
	s := b.settler(t, "lossy")
	s.cfg.Attempt = attemptDefault
	s.bucket.js = &lossy{JetStream: s.bucket.js, publish: publish}
	return s
}

// once does it the first time and sends afterwards.
func once(do func(send func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error)) func(func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
	var done atomic.Bool
	return func(send func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
		if done.Swap(true) {
			return send()
		}
		return do(send)
	}
}

// errLost is what a client sees when nothing comes back.
var errLost = context.DeadlineExceeded

// TestUnacknowledgedWrites: whatever is lost, one exchange is charged once, and
// the settler says what it came to.
func TestUnacknowledgedWrites(t *testing.T) {
	for _, size := range []int{1, 3} {
		b := newBed(t, size)
		other := b.settler(t, "other")
		key := ratelimit.Key("f.v.account.lost")
		one := func(s *settler) (ratelimit.Grant, error) { return s.Exchange(t.Context(), needs(key, perDay(1000), 1)) }
		var spent int64
		for _, c := range []struct {
			what    string
			publish func(send func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error)
			units   int64
			err     error
			charged int64
		}{
			{"the acknowledgement is lost", once(func(send func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
				_, _ = send()
				return nil, errLost
			}), 1, nil, 1},
			{"the write is lost", once(func(func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
				return nil, errLost
			}), 1, nil, 1},
			{"nobody takes the write for a moment", once(func(func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
				return nil, jetstream.ErrNoStreamResponse
			}), 1, nil, 1},
			{"the write is lost and another comes in between", once(func(func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
				if _, err := one(other); err != nil {
					t.Error(err)
				}
				return nil, errLost
			}), 0, ratelimit.ErrUnknown, 1},
			{"the acknowledgement is lost and another comes behind it", once(func(send func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
				_, _ = send()
				if _, err := one(other); err != nil {
					t.Error(err)
				}
				return nil, errLost
			}), 0, ratelimit.ErrUnknown, 2},
			{"every write is lost", func(func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
				return nil, errLost
			}, 0, ratelimit.ErrUnknown, 0},
			{"nobody ever takes a write", func(func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
				return nil, jetstream.ErrNoStreamResponse
			}, 0, ratelimit.ErrUnavailable, 0},
		} {
			s := b.lossySettler(t, c.publish)
			g, err := one(s)
			if g.Units != c.units || !errors.Is(err, c.err) {
				t.Errorf("%s: granted %d, %v; want %d, %v", c.what, g.Units, err, c.units, c.err)
			}
			spent += c.charged
			_, rec := b.stored(t, other.bucket.js, key)
			if got := 1000 - rec.counter.Available(perDay(1000), s.clock.Now()); got != spent {
				t.Fatalf("%s: %d charged in all, want %d", c.what, got, spent)
			}
			// The settler goes on from what the store holds.
			s.bucket.js = other.bucket.js
			if g, err := one(s); err != nil || g.Units != 1 {
				t.Fatalf("%s: the next one: granted %d, %v", c.what, g.Units, err)
			}
			spent++
		}
	}
}

// TestTheRecordTellsOfUnacknowledgedWrites: a write is lost from sight, and when
// the settler looks, another one stands there.
func TestTheRecordTellsOfUnacknowledgedWrites(t *testing.T) {
	type sender = func() (*jetstream.PubAck, error)
	lost := func(sender) (*jetstream.PubAck, error) { return nil, errLost }
	arrives := func(send sender) (*jetstream.PubAck, error) {
		_, _ = send()
		return nil, errLost
	}
	refused := func(sender) (*jetstream.PubAck, error) { return nil, jetstream.ErrNoStreamResponse }
	sends := func(send sender) (*jetstream.PubAck, error) { return send() }
	const limit, others = 10, 3
	for _, c := range []struct {
		what    string
		before  int64 // spent when it begins
		first   func(sender) (*jetstream.PubAck, error)
		then    func(sender) (*jetstream.PubAck, error) // with every later write
		units   int64
		err     error
		charged int64 // of what was asked
	}{
		{"it never arrives", 1, lost, sends, 4, nil, 4},
		{"it arrives", 1, arrives, sends, 4, nil, 4},
		{"it never arrives, on a key without a record", 0, lost, sends, 4, nil, 4},
		{"it arrives, on a key without a record", 0, arrives, sends, 4, nil, 4},
		{"the others leave less", 5, lost, sends, 2, nil, 2},
		{"the others leave less, but it was there first", 3, arrives, sends, 4, nil, 4},
		{"the next write is lost from sight too, and arrives", 1, lost, once(arrives), 4, nil, 4},
		{"the next write is lost from sight too", 1, lost, once(lost), 4, nil, 4},
		{"no write arrives any more", 1, lost, lost, 0, ratelimit.ErrUnknown, 0},
		{"nobody takes a write any more", 1, lost, refused, 0, ratelimit.ErrUnknown, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			b := newBed(t, 1)
			other := b.settler(t, "other")
			key := ratelimit.Key("f.v.account.recalled")
			spend := func(n int64) {
				if g, err := other.Exchange(t.Context(), needs(key, perDay(limit), n)); err != nil || g.Units != n {
					t.Errorf("others: granted %d of %d, %v", g.Units, n, err)
				}
			}
			if c.before > 0 { // or else the key has no record
				spend(c.before)
			}
			var late sender
			var sent atomic.Int32
			s := b.lossySettler(t, func(send sender) (*jetstream.PubAck, error) {
				if sent.Add(1) > 1 {
					return c.then(send)
				}
				late = send
				ack, err := c.first(send)
				spend(others)
				return ack, err
			})
			g, err := s.Exchange(t.Context(), named("node", needs(key, perDay(limit), 4)))
			if g.Units != c.units || !errors.Is(err, c.err) || errors.Is(err, ratelimit.ErrUnavailable) {
				t.Errorf("granted %d, %v; want %d, %v", g.Units, err, c.units, c.err)
			}
			if _, err := late(); err == nil {
				t.Error("the late copy was taken")
			}
			_, rec := b.stored(t, other.bucket.js, key)
			want := c.before + others + c.charged
			if got := limit - rec.counter.Available(perDay(limit), s.clock.Now()); got != want {
				t.Errorf("%d charged in all, want %d", got, want)
			}
		})
	}
}

// TestTheRecordTellsOfThoseWithAName: of a write that was lost from sight with two
// exchanges in it, who has a name gets what it came to, and who has none is told
// that nobody can tell.
func TestTheRecordTellsOfThoseWithAName(t *testing.T) {
	b := newBed(t, 1)
	other := b.settler(t, "other")
	key := ratelimit.Key("f.v.account.together")
	var writes atomic.Int32
	first, goOn := make(chan struct{}), make(chan struct{})
	s := b.lossySettler(t, func(send func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
		switch writes.Add(1) {
		case 1: // the others wait behind it, for one write together
			close(first)
			<-goOn
		case 2:
			_, err := send()
			if _, e := other.Exchange(t.Context(), needs(key, perDay(10), 1)); err != nil || e != nil {
				t.Error(err, e)
			}
			return nil, errLost
		}
		return send()
	})
	type result struct {
		units int64
		err   error
	}
	exchange := func(x ratelimit.Exchange) <-chan result {
		done := make(chan result, 1)
		go func() {
			g, err := s.Exchange(t.Context(), x)
			done <- result{g.Units, err}
		}()
		return done
	}
	exchange(needs(key, perDay(10), 1))
	<-first
	with, without := exchange(named("node", needs(key, perDay(10), 2))), exchange(needs(key, perDay(10), 3))
	if !within(bedWait, func() bool { return s.waiting(key) == 2 }) {
		t.Fatal("nobody waits")
	}
	close(goOn)
	if r := <-with; r.units != 2 || r.err != nil {
		t.Errorf("with a name: granted %d, %v; want 2", r.units, r.err)
	}
	if r := <-without; r.units != 0 || !errors.Is(r.err, ratelimit.ErrUnknown) {
		t.Errorf("without a name: granted %d, %v; want ErrUnknown", r.units, r.err)
	}
	_, rec := b.stored(t, s.bucket.js, key)
	if got := 10 - rec.counter.Available(perDay(10), s.clock.Now()); got != 1+2+3+1 {
		t.Errorf("%d charged, want each once: 7", got)
	}
}

// TestDuplicateOfAWriteDoesNoHarm: a write that was taken for lost arrives
// after its copy.
func TestDuplicateOfAWriteDoesNoHarm(t *testing.T) {
	b := newBed(t, 1)
	var late func() (*jetstream.PubAck, error)
	s := b.lossySettler(t, once(func(send func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
		late = send
		return nil, errLost
	}))
	key := ratelimit.Key("f.v.account.late")
	if _, err := s.Exchange(t.Context(), needs(key, perDay(10), 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := late(); err == nil {
		t.Error("the late copy was taken")
	}
	if g, err := s.Exchange(t.Context(), needs(key, perDay(10), 9)); err != nil || g.Units != 9 {
		t.Errorf("granted %d, %v; want the other 9", g.Units, err)
	}
}

// TestErrorIdentity: every way to fail has its name, on one server and on three,
// and keeps its cause.
func TestErrorIdentity(t *testing.T) {
	for _, size := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d servers", size), func(t *testing.T) {
			b := newBed(t, size)
			s := b.settler(t, "a")
			s.cfg.Attempt = attemptDefault
			key := ratelimit.Key("f.v.account.errors")
			x := needs(key, perDay(10), 1)
			if _, err := s.Exchange(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			for range 3 { // also right behind another write of the key
				if _, err := s.bucket.write(ctx, key, []byte("x"), time.Minute, 0); !errors.Is(err, errConflict) {
					t.Errorf("a wrong sequence: %v, want errConflict", err)
				}
			}
			checkExchangeError(t, s, needs("", perDay(1), 1), ratelimit.ErrUnavailable)
			checkExchangeError(t, s, ratelimit.Exchange{Key: key}, ratelimit.ErrUnavailable)

			v, _ := b.stored(t, s.bucket.js, key)
			sequence, err := s.bucket.write(ctx, key, []byte{0x08, recordFormat + 1}, time.Minute, v.sequence)
			if err != nil {
				t.Fatal(err)
			}
			checkExchangeError(t, s, x, ratelimit.ErrNewerFormat)
			if _, err := s.bucket.write(ctx, key, []byte("garbage"), time.Minute, sequence); err != nil {
				t.Fatal(err)
			}
			checkExchangeError(t, s, x, ratelimit.ErrUnavailable)
			checkExchangeError(t, s, x, errGarbage)

			if err := s.bucket.js.DeleteStream(ctx, b.stream); err != nil {
				t.Fatal(err)
			}
			other := needs("f.v.account.fresh", perDay(10), 1)
			checkExchangeError(t, s, other, ratelimit.ErrUnavailable)
			s.bucket.js.Conn().Close()
			checkExchangeError(t, s, other, ratelimit.ErrUnavailable)
			checkExchangeError(t, s, other, nats.ErrDisconnected)
		})
	}
}

func checkExchangeError(t *testing.T, s *settler, x ratelimit.Exchange, want error) {
	t.Helper()
	_, err := s.Exchange(t.Context(), x)
	if !errors.Is(err, want) {
		t.Errorf("%v, want %v", err, want)
	}
	if errors.Is(err, ratelimit.ErrUnknown) {
		t.Errorf("%v, and nothing was applied", err)
	}
}

// TestGivingUp: who leaves before anything was sent knows that nothing was
// applied, who leaves later does not, and neither hurts who stays.
func TestGivingUp(t *testing.T) {
	b := newBed(t, 1)
	sent, goOn := make(chan struct{}), make(chan struct{})
	s := b.lossySettler(t, once(func(send func() (*jetstream.PubAck, error)) (*jetstream.PubAck, error) {
		close(sent)
		<-goOn
		return send()
	}))
	key := ratelimit.Key("f.v.account.leaving")
	exchange := func(ctx context.Context) <-chan error {
		result := make(chan error, 1)
		go func() {
			_, err := s.Exchange(ctx, needs(key, perDay(10), 1))
			result <- err
		}()
		return result
	}
	early, leaveEarly := context.WithCancel(t.Context())
	inFlight := exchange(early)
	<-sent
	late, leaveLate := context.WithCancel(t.Context())
	queued, staying := exchange(late), exchange(t.Context())
	if !within(bedWait, func() bool { return s.waiting(key) == 2 }) {
		t.Fatal("nobody waits")
	}
	leaveEarly()
	if err := <-inFlight; !errors.Is(err, ratelimit.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("left while it was in flight: %v", err)
	}
	leaveLate()
	if err := <-queued; !errors.Is(err, ratelimit.ErrUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("left before it was sent: %v", err)
	}
	close(goOn)
	if err := <-staying; err != nil {
		t.Errorf("stayed: %v", err)
	}
	_, rec := b.stored(t, s.bucket.js, key)
	if got := 10 - rec.counter.Available(perDay(10), s.clock.Now()); got != 2 {
		t.Errorf("%d charged, want the one in flight and the one that stayed", got)
	}
}

// waiting is how many exchanges wait for a counter behind the one in flight.
func (s *settler) waiting(key ratelimit.Key) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.lines[key]; ok {
		return len(l.waiting)
	}
	return 0
}
