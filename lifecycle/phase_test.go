package lifecycle

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// Every pair of phases is either in this list or an error naming both.
func TestPhase_moves(t *testing.T) {
	t.Parallel()
	legal := []string{
		"starting→joining", "starting→draining", "starting→stopped",
		"joining→ready", "joining→draining", "joining→stopped",
		"ready→draining",
		"draining→stopped",
	}
	for from := range Phase(phases) {
		for to := range Phase(phases) {
			name := from.String() + "→" + to.String()
			got, err := from.Move(to)
			if slices.Contains(legal, name) {
				if err != nil || got != to {
					t.Errorf("%s: got %s, %v; want the move", name, got, err)
				}
				continue
			}
			var move *MoveError
			if !errors.As(err, &move) || move.From != from || move.To != to || !errors.Is(err, ErrMove) {
				t.Errorf("%s: error %v, want a MoveError of both", name, err)
				continue
			}
			if got != from {
				t.Errorf("%s: a refused move led to %s", name, got)
			}
			if !strings.Contains(err.Error(), from.String()) || !strings.Contains(err.Error(), to.String()) {
				t.Errorf("%s: %q does not name both", name, err)
			}
		}
	}
}
