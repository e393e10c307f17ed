package kvstore

import (
	"slices"
	"testing"
	"time"
)

// A story of nodes that come, fall silent, drain and go, told to one of them.
func TestMembers_story(t *testing.T) {
	owner := heartbeat{Phase: "ready", Owner: true}
	m := newMembers("a", time.Second, 5*time.Second)
	now := time.Duration(0)
	check := func(what string, count int, owners ...string) {
		t.Helper()
		if got := m.count(); got != count {
			t.Errorf("%s: %d nodes, want %d", what, got, count)
		}
		if got := m.Live(); !slices.Equal(got, owners) {
			t.Errorf("%s: owners %v, want %v", what, got, owners)
		}
	}
	hear := func(names ...string) {
		m.answered(now)
		for _, n := range names {
			m.hear(now, n, owner)
		}
	}
	check("nobody was heard", 1)

	hear("c", "a", "b")
	check("three came", 3, "a", "b", "c")
	same := m.Live()
	now += time.Second
	hear("a", "b", "c")
	if &same[0] != &m.Live()[0] {
		t.Error("the list was replaced although nothing changed")
	}

	m.hear(now, "c", heartbeat{Phase: PhaseDraining})
	check("c drains: it counts and takes nothing for others", 3, "a", "b")
	m.leave("c")
	check("c said good-bye", 2, "a", "b")

	for range 6 {
		now += time.Second
		hear("a")
	}
	check("b was killed six seconds ago", 1, "a")
}

// How far wall clocks are apart is told of nodes that were there at the same time
// and knew the store's clock, and it is never forgotten.
func TestMembers_wallsApart(t *testing.T) {
	m := newMembers("a", time.Second, 5*time.Second)
	at := func(offset time.Duration) heartbeat { return heartbeat{At: 1, Offset: offset} }
	check := func(what string, want time.Duration) {
		t.Helper()
		if got := m.wallsApart(); got != want {
			t.Errorf("%s: %v apart, want %v", what, got, want)
		}
	}
	check("nobody was heard", 0)
	m.hear(0, "a", at(3*time.Hour))
	check("one was", 0)
	m.hear(0, "b", heartbeat{})
	check("another does not know the store's clock", 0)
	m.hear(0, "b", at(3*time.Hour+time.Minute))
	check("it does", time.Minute)
	m.find("c", at(2*time.Hour), time.Second)
	check("a third was found in the bucket", time.Hour+time.Minute)
	m.leave("c")
	m.hear(0, "b", at(3*time.Hour))
	check("the third left, the other was set right", time.Hour+time.Minute)
	m.hear(0, "b", at(time.Duration(1<<62)))
	check("a clock beyond all sense", maxApart)
}

// While the store takes no heartbeat it is away, and nobody is dead: not even
// when this node still hears itself, through a server in its own process.
func TestMembers_standStillWhileTheStoreIsAway(t *testing.T) {
	m := newMembers("a", time.Second, 5*time.Second)
	owner := heartbeat{Owner: true}
	m.answered(0)
	m.hear(0, "a", owner)
	m.hear(0, "b", owner)
	for at := time.Second; at < 10*time.Minute; at += time.Second {
		m.hear(at, "a", owner)
	}
	m.answered(10 * time.Minute)
	if got := m.count(); got != 2 {
		t.Errorf("%d nodes after an outage, want 2", got)
	}
	if got := m.Live(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("owners %v after an outage", got)
	}
}

// What is found in the bucket counts by its age, and what was heard is fresher.
func TestMembers_found(t *testing.T) {
	m := newMembers("a", time.Second, 5*time.Second)
	m.answered(time.Second)
	m.hear(time.Second, "b", heartbeat{Owner: true})
	m.find("b", heartbeat{}, 4*time.Second)
	m.find("old", heartbeat{Owner: true}, time.Minute)
	m.find("recent", heartbeat{Owner: true}, 4*time.Second)
	if got := m.Live(); !slices.Equal(got, []string{"b", "recent"}) {
		t.Errorf("owners %v, want b and recent", got)
	}
	m.answered(2 * time.Second)
	m.answered(3 * time.Second)
	if got := m.Live(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("owners %v, want recent to be silent for too long", got)
	}
}

// Only clocks of others that were heard themselves, and were synced, count.
func TestMembers_offsets(t *testing.T) {
	m := newMembers("a", time.Second, 5*time.Second)
	m.hear(10, "a", heartbeat{At: 1000})
	m.hear(10, "b", heartbeat{At: 110, Uptime: time.Minute})
	m.hear(10, "young", heartbeat{At: 210, Uptime: time.Second})
	m.hear(10, "unsynced", heartbeat{})
	m.find("found", heartbeat{At: 5000}, 0)
	if got := m.offsets(2 * time.Second); !slices.Equal(got, []int64{100}) {
		t.Errorf("offsets of elders %v, want [100]", got)
	}
	if got := len(m.offsets(0)); got != 2 {
		t.Errorf("%d offsets, want 2", got)
	}
}

func TestMembers_gathered(t *testing.T) {
	m := newMembers("a", time.Second, 5*time.Second)
	m.hear(0, "a", heartbeat{})
	m.hear(0, "b", heartbeat{Growing: true})
	if m.gathered(2) {
		t.Error("gathered while b grows")
	}
	m.hear(0, "b", heartbeat{})
	if !m.gathered(2) || m.gathered(3) {
		t.Error("two nodes are two nodes")
	}
}
