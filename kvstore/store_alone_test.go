package kvstore

import (
	"testing"
	"time"
)

// A server alone joins within a second of an empty directory, and its checks
// all hold.
func TestStore_alone(t *testing.T) {
	began := time.Now()
	s := startStore(t, testConfig(t))
	awaitJoined(t, s)
	t.Logf("joined after %v", time.Since(began))
	if err := failing(s); err != nil {
		t.Errorf("checks after joining: %v", err)
	}
	if got := s.Live(); got != 1 {
		t.Errorf("Live = %d, want 1", got)
	}
	if e := s.Clock().Error(); e > 100*time.Millisecond {
		t.Errorf("clock error %v after joining", e)
	}
}
