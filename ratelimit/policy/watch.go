package policy

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// watch is told of changes around a path. It watches directories, never files:
// a file that is replaced takes its watch with it.
type watch struct {
	fs      *fsnotify.Watcher
	path    string
	dirs    []string      // watched now
	changes chan struct{} // one waiting stands for any number
	done    chan struct{}
}

// newWatch begins to watch the path. That it is missing is no error here.
func newWatch(path string) (*watch, error) {
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	w := &watch{fs: fs, path: path, changes: make(chan struct{}, 1), done: make(chan struct{})}
	go w.forward()
	w.renew()
	return w, nil
}

// forward takes what the watcher sends until it is closed. It has a goroutine
// of its own because the watcher holds its lock while it waits to send.
func (w *watch) forward() {
	defer close(w.done)
	for {
		select {
		case event, ok := <-w.fs.Events:
			if !ok {
				return
			}
			if event.Op == 0 {
				continue
			}
		case _, ok := <-w.fs.Errors: // events were lost: as good as a change
			if !ok {
				return
			}
		}
		select {
		case w.changes <- struct{}{}:
		default:
		}
	}
}

// renew watches what now stands where the path points to. Whatever happened
// before it returns is seen by reading the path afterwards. A failure means
// that there is nothing to watch, which reading tells better; the poll tries
// again.
func (w *watch) renew() {
	for _, dir := range w.dirs {
		_ = w.fs.Remove(dir) // another directory may stand there by now
	}
	w.dirs = w.dirs[:0]
	for _, dir := range dirsOf(w.path) {
		if w.fs.Add(dir) == nil {
			w.dirs = append(w.dirs, dir)
		}
	}
}

// dirsOf is the directories in which a change may change what the path holds:
// the one it stands in, where it may be renamed over; itself; and where it
// leads to through symbolic links.
func dirsOf(path string) []string {
	dirs := []string{filepath.Dir(path)}
	if target, err := filepath.EvalSymlinks(path); err == nil && target != filepath.Clean(path) {
		dirs = append(dirs, filepath.Dir(target))
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		dirs = append(dirs, path)
	}
	return dirs
}

// close ends the watch and waits for its goroutine.
func (w *watch) close() {
	_ = w.fs.Close()
	<-w.done
}

// follow reloads after each change once it has settled, and every Poll, until
// ctx ends.
func (f *FileSource) follow(ctx context.Context, w *watch) {
	poll := time.NewTicker(f.cfg.Poll)
	defer poll.Stop()
	settled := time.NewTimer(time.Hour)
	settled.Stop()
	defer settled.Stop()
	var deadline time.Time // of reading a path that never rests; zero: nothing changed
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.changes:
			if deadline.IsZero() {
				deadline = time.Now().Add(4 * f.cfg.Settle)
			}
			settled.Reset(min(f.cfg.Settle, time.Until(deadline)))
			continue
		case <-poll.C:
		case <-settled.C:
			deadline = time.Time{}
		}
		w.renew()
		f.reload()
	}
}
