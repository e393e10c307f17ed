package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/headgate-io/headgate/ratelimit"
)

// FileSource lists the policies of a file, or of all *.yaml, *.yml and *.json
// files that lie directly in a directory, and follows their changes: edits,
// renames over the file, swapped symbolic links as a ConfigMap's, a directory
// put in the place of another.
//
// A state that cannot be read keeps the last good policies: a missing path, a
// file that is empty, half-written or has any [Fault], a directory whose last
// file went away. (To have no policy at all, keep a file with only a comment.)
// Use [NewFileSource]. All methods may be called concurrently.
type FileSource struct {
	cfg  Config
	feed Feed

	stop    context.CancelFunc // nil before Start
	stopped chan struct{}
	mu      sync.Mutex // guards stop and stopped

	// What follows belongs to Start, then to the watching goroutine.
	seen   [sha256.Size]byte // what was last read whole, faulty or not
	fault  string            // the fault last told; empty when there is none
	loaded int               // how many policies are in force
}

// NewFileSource makes a source for cfg.Path, which must not be empty. It does
// no I/O. The error is from [Config.Validate].
func NewFileSource(cfg Config) (*FileSource, error) {
	faults := []error{cfg.Validate()}
	if cfg.Path == "" {
		faults = append(faults, &ConfigError{"Path", cfg.Path, "is required"})
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &FileSource{cfg: cfg, feed: Discard}, nil
}

// Name implements [Source].
func (f *FileSource) Name() string { return File }

// Attach implements [Source].
func (f *FileSource) Attach(feed Feed) { f.feed = feed }

// Start reads the path once, then watches it until Stop. The error says why
// the path cannot be read: it wraps [ErrPolicy] when it holds an invalid
// policy, else the error of the file system. Nothing runs after an error.
func (f *FileSource) Start(context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop != nil {
		return errors.New("policy: file source was started before")
	}
	// The watch comes first, so that no change falls between it and the reading.
	w, err := newWatch(f.cfg.Path)
	if err != nil {
		return fmt.Errorf("policy: watch %s: %w", f.cfg.Path, err)
	}
	if err := f.load(); err != nil {
		w.close()
		return fmt.Errorf("policy: %s: %w", f.cfg.Path, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.stop, f.stopped = cancel, make(chan struct{})
	go func() {
		defer close(f.stopped)
		defer w.close()
		f.follow(ctx, w)
	}()
	return nil
}

// Stop ends the watching and waits for it, at most until ctx ends. The last
// policies stay in force. It may be called again, and before Start.
func (f *FileSource) Stop(ctx context.Context) error {
	f.mu.Lock()
	stop, stopped := f.stop, f.stopped
	f.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("policy: stop file source: %w", ctx.Err())
	}
}

// reload loads the path and tells the feed of a fault once.
func (f *FileSource) reload() {
	err := f.load()
	switch {
	case errors.Is(err, errSame):
	case err != nil:
		if text := err.Error(); text != f.fault {
			f.fault = text
			f.feed.Fault(fmt.Errorf("%s: %w", f.cfg.Path, err))
		}
	case f.fault != "":
		f.fault = ""
		f.feed.Recovered()
	}
}

// errSame: the path holds what was read last time, to the same effect.
var errSame = errors.New("unchanged")

// load puts what the path holds in force, all of it or nothing.
func (f *FileSource) load() error {
	texts, err := readPath(f.cfg.Path)
	if err != nil {
		f.seen = [sha256.Size]byte{} // what it holds next counts as new
		return err
	}
	sum := sumOf(texts)
	if sum == f.seen {
		return errSame
	}
	f.seen = sum
	if len(texts) == 0 && f.loaded > 0 {
		return errors.New("holds no *.yaml, *.yml or *.json file any more")
	}
	policies, err := parseAll(texts)
	if err != nil {
		return err
	}
	f.loaded = len(policies)
	f.feed.Replace(policies)
	return nil
}

// text is what one file held.
type text struct {
	name string
	data []byte
}

func readPath(path string) ([]text, error) {
	files, err := filesOf(path)
	if err != nil {
		return nil, err
	}
	texts := make([]text, len(files))
	for i, file := range files {
		data, err := readFile(file)
		if err != nil {
			return nil, err
		}
		texts[i] = text{filepath.Base(file), data}
	}
	return texts, nil
}

// sumOf is never zero.
func sumOf(texts []text) (sum [sha256.Size]byte) {
	h := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(h, "%s\x00%d\x00", t.name, len(t.data))
		h.Write(t.data)
	}
	h.Sum(sum[:0])
	return sum
}

// parseAll reads all texts; a function may not be named in two of them.
func parseAll(texts []text) ([]*ratelimit.Policy, error) {
	var (
		found  []located
		faults []*Fault
	)
	for _, t := range texts {
		more, _, wrong := parse(t.name, t.data)
		found, faults = append(found, more...), append(faults, wrong...)
	}
	faults = append(faults, duplicates(found)...)
	if len(faults) > 0 {
		return nil, joinFaults(faults)
	}
	policies := policiesOf(found)
	for _, p := range policies {
		p.Source, p.Revision = File, Digest(p)
	}
	return policies, nil
}

// filesOf is the path itself, or the policy files in it, sorted.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, bare(err) // whoever asked for this path names it
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, bare(err)
	}
	var files []string
	for _, entry := range entries {
		if isPolicyFile(entry.Name()) {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	return files, nil
}

// isPolicyFile leaves out hidden files: editors' and a ConfigMap's own.
func isPolicyFile(name string) bool {
	if strings.HasPrefix(name, ".") {
		return false
	}
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name)))
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, plain(err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", filepath.Base(path))
	case info.Size() > MaxBytes:
		return nil, fmt.Errorf("%s holds %d bytes, at most %d may be given", filepath.Base(path), info.Size(), MaxBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, plain(err)
	}
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil, fmt.Errorf("%s is empty (write a comment into it to have no policy)", filepath.Base(path))
	}
	return data, nil
}

// bare takes the path out of an error that is going to be told with it.
func bare(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// plain leaves only the file's name of the path in an error.
func plain(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return fmt.Errorf("%s: %w", filepath.Base(at.Path), at.Err)
	}
	return err
}
