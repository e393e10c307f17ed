package nvcf

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/headgate-io/headgate/ratelimit"
)

// function is what the API is asked about.
type function struct{ id, version string }

// entry is what is remembered of a function.
type entry struct {
	key     function
	answer  atomic.Pointer[answer] // nil before the first
	used    atomic.Int64           // when it was last asked for, Unix nanoseconds
	dropped atomic.Bool            // the cache has forgotten it
	single  single
}

// answer is immutable.
type answer struct {
	policy  *ratelimit.Policy // nil: no limit
	until   time.Time         // when to ask again
	tries   int               // how many questions failed in a row; policy is what was known before
	partial bool              // policy is what could be read of an answer, no good one being known
	unknown bool              // there is no policy because none was ever told
}

func (a *answer) stale() bool { return a != nil && a.policy != nil && a.policy.Stale }

// Pauses between questions about a function while they fail.
const (
	firstPause   = time.Second
	longestPause = 5 * time.Second
)

// ask asks the API once and remembers what came of it.
func (s *Source) ask(ctx context.Context, e *entry) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	start := time.Now()
	p, res, err := s.question(ctx, e.key)
	if s.tasks.ctx.Err() != nil {
		return // the source was stopped: nothing was learned
	}
	s.metrics.seconds.Observe(time.Since(start).Seconds())
	s.metrics.questions[res].Inc()
	before := e.answer.Load()
	next := s.next(before, p, res)
	e.answer.Store(next)
	s.health.note(e, res, err, s.feed)
	if before != nil && (before.policy != next.policy || before.unknown != next.unknown) {
		s.changed.Store(true)
	}
}

// next is the answer after a question that ended with res. p is the policy, or
// for an invalid answer what could be read of it.
func (s *Source) next(before *answer, p *ratelimit.Policy, res result) *answer {
	if before == nil {
		before = &answer{unknown: true}
	}
	if res == known || res == absent {
		// The same policy stays the same pointer, for whoever compares those.
		if old := before.policy; old != nil && p != nil && !old.Stale && old.Revision == p.Revision {
			p = old
		}
		life := s.cfg.CacheTTL
		return &answer{policy: p, until: time.Now().Add(life - rand.N(life/5))}
	}
	first := min(firstPause, s.cfg.CacheTTL)
	pause := min(first<<min(before.tries, 10), longestPause)
	next := &answer{
		policy: before.policy, partial: before.partial, unknown: before.unknown,
		tries: before.tries + 1, until: time.Now().Add(pause - rand.N(pause/2)),
	}
	switch {
	case p != nil && (before.policy == nil || before.partial):
		if before.policy == nil || before.policy.Revision != p.Revision {
			next.policy = staleCopy(p)
		}
		next.partial, next.unknown = true, false
	case before.policy != nil && !before.policy.Stale:
		next.policy = staleCopy(before.policy)
	}
	return next
}

func staleCopy(p *ratelimit.Policy) *ratelimit.Policy {
	stale := *p
	stale.Stale = true
	return &stale
}

// question asks the API. err is nil unless res is invalid or failed, and names
// neither a token nor an account.
func (s *Source) question(ctx context.Context, key function) (p *ratelimit.Policy, res result, err error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, failed, fmt.Errorf("policy API: %d questions are under way", cap(s.slots))
	}
	c := s.client.Load()
	if c == nil {
		return nil, failed, errors.New("policy API: not started")
	}
	token, err := s.tokens.token(ctx)
	if err != nil {
		return nil, failed, fmt.Errorf("policy API: %w", err)
	}
	config, err := c.ask(ctx, key, token)
	switch code := status.Code(err); code {
	case codes.OK:
	case codes.NotFound:
		return nil, absent, nil
	case codes.Unauthenticated:
		s.tokens.refused(token)
		return nil, failed, errors.New("policy API: the token was refused")
	case codes.DeadlineExceeded:
		return nil, failed, fmt.Errorf("policy API: no answer within %s", s.cfg.Timeout)
	default:
		return nil, failed, fmt.Errorf("policy API: %s%s", code, connectionFault(err))
	}
	p, err = translate(key, config, s.algorithm)
	switch {
	case err != nil:
		return p, invalid, err
	case p == nil:
		return nil, absent, nil
	default:
		return p, known, nil
	}
}

// maxMessage bounds how much of an error's text is told.
const maxMessage = 200

// connectionFault is why there is no connection, and empty for what the API
// itself said, which may hold anything.
func connectionFault(err error) string {
	text := status.Convert(err).Message()
	if !strings.HasPrefix(text, "connection error: ") {
		return ""
	}
	return ": " + text[:min(len(text), maxMessage)]
}
