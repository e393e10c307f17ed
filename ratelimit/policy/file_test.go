package policy

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// follow starts a source on the path and returns what it tells; its first list
// is still to be read. The poll is off, unless a test is about it.
func follow(t *testing.T, path string, change ...func(*Config)) *recorder {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Path, cfg.Poll = path, time.Hour
	for _, f := range change {
		f(&cfg)
	}
	source, err := NewFileSource(cfg)
	must(t, err)
	r := newRecorder()
	source.Attach(r)
	must(t, source.Start(t.Context()))
	t.Cleanup(func() {
		must(t, source.Stop(context.Background()))
		must(t, source.Stop(context.Background()))
	})
	return r
}

// functions waits for the next list.
func functions(t *testing.T, r *recorder) string {
	t.Helper()
	var names []string
	for _, p := range within(t, r.lists, "list") {
		if p.Source != File || p.Revision != Digest(p) {
			t.Errorf("source %q, revision %q", p.Source, p.Revision)
		}
		names = append(names, p.Function)
	}
	return strings.Join(names, " ")
}

// until waits for the list that is wanted, past the ones in between: a change
// of several steps may be read half-way.
func until(t *testing.T, r *recorder, want string) {
	t.Helper()
	for range 10 {
		if functions(t, r) == want {
			return
		}
	}
	t.Fatalf("never got %q", want)
}

func TestFileSource_file(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policies.yaml")
	write(t, path, "function: a\n")
	r := follow(t, path)
	until(t, r, "a")

	write(t, path, "function: b\n")
	until(t, r, "b")

	aside := path + ".new"
	write(t, aside, "function: c\n")
	must(t, os.Rename(aside, path))
	until(t, r, "c")
	none(t, r.faults, "fault")
}

// Each bad state is told once, the last good policies stay, and the next good
// state is taken without a restart.
func TestFileSource_badStates(t *testing.T) {
	t.Parallel()
	bad := []struct {
		name string
		do   func(t *testing.T, path string)
		want string
		is   error
	}{
		{"invalid", func(t *testing.T, p string) { write(t, p, "function: a\ntotal: {rates: 10-X}\n") }, `"10-X"`, ErrPolicy},
		{"half-written", func(t *testing.T, p string) { write(t, p, "function: a\ntotal: {rates: \"10") }, "not YAML", ErrPolicy},
		{"empty", func(t *testing.T, p string) { write(t, p, "") }, "is empty", nil},
		{"deleted", func(t *testing.T, p string) { must(t, os.Remove(p)) }, "policies.yaml", fs.ErrNotExist},
		{"a directory without files", func(t *testing.T, p string) {
			must(t, os.Remove(p))
			must(t, os.Mkdir(p, 0o700))
		}, "holds no", nil},
		{"its directory deleted", func(t *testing.T, p string) { must(t, os.RemoveAll(filepath.Dir(p))) }, "policies.yaml", fs.ErrNotExist},
	}
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "d", "policies.yaml")
			must(t, os.Mkdir(filepath.Dir(path), 0o700))
			write(t, path, "function: a\n")
			r := follow(t, path, func(c *Config) { c.Poll = 100 * time.Millisecond })
			until(t, r, "a")
			tt.do(t, path)
			var err error
			for range 3 { // a change of several steps may be read half-way
				err = within(t, r.faults, "fault")
				if strings.Contains(err.Error(), tt.want) {
					break
				}
			}
			if !strings.Contains(err.Error(), tt.want) || tt.is != nil && !errors.Is(err, tt.is) {
				t.Fatalf("fault %v, want %q", err, tt.want)
			}
			polls(t, 3) // it is not told again
			none(t, r.faults, "fault")
			none(t, r.lists, "list")

			must(t, os.RemoveAll(path))
			must(t, os.MkdirAll(filepath.Dir(path), 0o700))
			write(t, path, "function: b\n")
			until(t, r, "b")
			within(t, r.recovered, "recovery")
		})
	}
}

// polls waits for n polls of 100 ms.
func polls(t *testing.T, n int) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range n {
		<-tick.C
	}
}

// A file without read permission is no different; root may read it anyway, so
// the test uses what nobody can read as a file.
func TestFileSource_unreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), "function: a\n")
	r := follow(t, dir)
	until(t, r, "a")
	must(t, os.Mkdir(filepath.Join(dir, "b.yaml"), 0o700))
	if err := within(t, r.faults, "fault"); !strings.Contains(err.Error(), "b.yaml is not a regular file") {
		t.Fatal(err)
	}
	must(t, os.Remove(filepath.Join(dir, "b.yaml")))
	within(t, r.recovered, "recovery")
}

func TestFileSource_directory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b.yml"), "function: b\n")
	write(t, filepath.Join(dir, "a.yaml"), "function: a1\n---\nfunction: a2\n")
	write(t, filepath.Join(dir, ".hidden.yaml"), "function: hidden\n")
	write(t, filepath.Join(dir, "README.md"), "no policy")
	r := follow(t, dir)
	until(t, r, "a1 a2 b")

	write(t, filepath.Join(dir, "c.json"), `{"function":"c"}`)
	until(t, r, "a1 a2 b c")
	must(t, os.Remove(filepath.Join(dir, "a.yaml")))
	until(t, r, "b c")

	write(t, filepath.Join(dir, "d.yaml"), "function: c\n")
	err := within(t, r.faults, "fault")
	if want := `d.yaml: line 1: function: "c" with version "*" has a policy already, at c.json line 1`; !strings.Contains(err.Error(), want) {
		t.Fatalf("got %v, want %q", err, want)
	}
	must(t, os.Rename(filepath.Join(dir, "d.yaml"), filepath.Join(dir, "d.old")))
	within(t, r.recovered, "recovery")
}

// A ConfigMap volume: the files are links through "..data", which is a link to
// a directory of its own for each version and is renamed over.
func TestFileSource_configMap(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{true, false} {
		dir := t.TempDir()
		publish := func(version, text string) {
			must(t, os.Mkdir(filepath.Join(dir, "..v"+version), 0o700))
			write(t, filepath.Join(dir, "..v"+version, "policies.yaml"), text)
			must(t, os.Symlink("..v"+version, filepath.Join(dir, "..data_tmp")))
			must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		}
		publish("1", "function: a\n")
		must(t, os.Symlink(filepath.Join("..data", "policies.yaml"), filepath.Join(dir, "policies.yaml")))
		path := dir
		if !whole {
			path = filepath.Join(dir, "policies.yaml")
		}
		r := follow(t, path)
		until(t, r, "a")
		publish("2", "function: b\n")
		must(t, os.RemoveAll(filepath.Join(dir, "..v1")))
		until(t, r, "b")
		publish("3", "function: c\n")
		must(t, os.RemoveAll(filepath.Join(dir, "..v2")))
		until(t, r, "c")
		none(t, r.faults, "fault")
	}
}

// The directory itself is exchanged: by rename, and behind a symbolic link.
func TestFileSource_directorySwap(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	for _, n := range []string{"a", "b", "c"} {
		must(t, os.Mkdir(filepath.Join(top, n), 0o700))
		write(t, filepath.Join(top, n, "p.yaml"), "function: "+n+"\n")
	}
	link := filepath.Join(top, "current")
	relink := func(to string) {
		must(t, os.Symlink(to, link+".new"))
		must(t, os.Rename(link+".new", link))
	}
	relink("a")
	r := follow(t, link)
	until(t, r, "a")
	relink("b")
	until(t, r, "b")
	write(t, filepath.Join(top, "b", "p.yaml"), "function: b2\n")
	until(t, r, "b2")

	plain := filepath.Join(top, "a")
	r = follow(t, plain)
	until(t, r, "a")
	must(t, os.Rename(plain, plain+".old"))
	must(t, os.Rename(filepath.Join(top, "c"), plain))
	until(t, r, "c")
	write(t, filepath.Join(plain, "p.yaml"), "function: c2\n")
	until(t, r, "c2")
}

// A path that never rests is read all the same.
func TestFileSource_neverRests(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.yaml"), "function: a\n")
	r := follow(t, dir)
	until(t, r, "a")
	noise := time.NewTicker(10 * time.Millisecond)
	defer noise.Stop()
	write(t, filepath.Join(dir, "b.yaml"), "function: b\n")
	for {
		select {
		case policies := <-r.lists:
			if len(policies) != 2 {
				t.Fatalf("got %d policies", len(policies))
			}
			return
		case <-noise.C:
			write(t, filepath.Join(dir, "noise.txt"), "x")
		case <-time.After(time.Second):
			t.Fatal("no list within a second")
		}
	}
}

func TestFileSource_firstStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	invalid := filepath.Join(dir, "invalid.yaml")
	write(t, invalid, "function: f\ntotal: {rates: x}\n")
	tests := []struct {
		path string
		is   error
	}{{filepath.Join(dir, "missing.yaml"), fs.ErrNotExist}, {filepath.Join(dir, "no", "way"), fs.ErrNotExist}, {invalid, ErrPolicy}, {dir, ErrPolicy}}
	for _, tt := range tests {
		cfg := DefaultConfig()
		cfg.Path = tt.path
		source, err := NewFileSource(cfg)
		must(t, err)
		if err := source.Start(t.Context()); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.path) {
			t.Errorf("%s: got %v, want %v", tt.path, err, tt.is)
		}
		must(t, source.Stop(t.Context()))
	}
	if _, err := NewFileSource(DefaultConfig()); err == nil {
		t.Error("a source without a path was made")
	}
}

func TestFileSource_manyPolicies(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 10_000 {
		b.WriteString("- {function: f" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + time.Duration(i).String() + ", account: {rates: \"10-S,1000-H\"}}\n")
	}
	path := filepath.Join(t.TempDir(), "p.yaml")
	write(t, path, b.String())
	start := time.Now()
	r := follow(t, path)
	set := within(t, r.lists, "list")
	if len(set) != 10_000 {
		t.Fatalf("got %d", len(set))
	}
	t.Logf("10,000 policies loaded in %s", time.Since(start))
}
