package lifecycle

import "slices"

// Phase is where a process is in its life. The zero Phase is Starting.
type Phase uint8

// The phases, in the order in which a process lives them.
const (
	Starting Phase = iota // listeners are bound, nothing is served
	Joining               // waiting for the checks to hold for the first time
	Ready                 // was ready at least once and was not told to leave
	Draining              // told to leave; still serving for a while
	Stopped               // the end
)

// phases is how many there are.
const phases = 5

// moves is the machine: what each phase may lead to.
var moves = [phases][]Phase{
	Starting: {Joining, Draining, Stopped},
	Joining:  {Ready, Draining, Stopped},
	Ready:    {Draining},
	Draining: {Stopped},
	Stopped:  nil,
}

// String is the phase as metrics, logs and answers spell it.
func (p Phase) String() string {
	return [phases]string{"starting", "joining", "ready", "draining", "stopped"}[p]
}

// MarshalText spells the phase as String does.
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// Move returns to when p may lead there, and a [*MoveError] when it may not.
// Staying is not a move.
func (p Phase) Move(to Phase) (Phase, error) {
	if !slices.Contains(moves[p], to) {
		return p, &MoveError{From: p, To: to}
	}
	return to, nil
}
