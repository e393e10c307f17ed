package kvstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// What a data directory holds.
const (
	lockFileName = "lock"      // held by the process that uses it
	nodeFileName = "node.json" // whose it is
	storeDirName = "store"     // the server's own
)

// Shapes that a data directory is written in. A server alone and a member of a
// cluster cannot read one another's: a member deletes what its cluster does
// not know, see [dataDir.claim].
const (
	shapeAlone  = "alone"
	shapeMember = "member"
)

// dataDirOwner is the content of the node file.
type dataDirOwner struct {
	Node  string `json:"node"`
	Shape string `json:"shape"`
}

// dataDir is a locked data directory.
type dataDir struct {
	path string
	lock *os.File
}

// openDataDir makes the directory if need be and claims it for this process,
// node name and shape. Errors: [ErrDataDirInUse], [ErrDataDirNode],
// [ErrDataDirShape], and those of the file system.
func openDataDir(path, node, shape string) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("kvstore: data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, lockFileName), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("kvstore: data directory: %w", err)
	}
	d := &dataDir{path: path, lock: lock}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("kvstore: %s: %w", path, ErrDataDirInUse)
		}
		return nil, fmt.Errorf("kvstore: lock %s: %w", lock.Name(), err)
	}
	if err := d.claim(dataDirOwner{Node: node, Shape: shape}); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// storeDir is where the server keeps its files.
func (d *dataDir) storeDir() string { return filepath.Join(d.path, storeDirName) }

// close gives the directory up. The lock file stays: removing it would let two
// processes lock two different files of one name.
func (d *dataDir) close() { _ = d.lock.Close() }

// claim checks the owner and writes it where there is none yet.
func (d *dataDir) claim(want dataDirOwner) error {
	path := filepath.Join(d.path, nodeFileName)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return d.writeOwner(want)
	}
	if err != nil {
		return fmt.Errorf("kvstore: data directory: %w", err)
	}
	var have dataDirOwner
	if err := json.Unmarshal(raw, &have); err != nil {
		return fmt.Errorf("kvstore: %s: %w", path, err)
	}
	switch {
	case have.Node != want.Node:
		return fmt.Errorf("kvstore: %s: %w: it belongs to %q and this node is %q",
			d.path, ErrDataDirNode, have.Node, want.Node)
	case have.Shape == shapeMember && want.Shape == shapeAlone:
		return fmt.Errorf("kvstore: %s: %w", d.path, ErrDataDirShape)
	case have.Shape == shapeAlone && want.Shape == shapeMember:
		return d.outgrow(want)
	}
	return nil
}

// writeOwner replaces the node file in one step.
func (d *dataDir) writeOwner(o dataDirOwner) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("kvstore: data directory: %w", err)
	}
	path := filepath.Join(d.path, nodeFileName)
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return fmt.Errorf("kvstore: data directory: %w", err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("kvstore: data directory: %w", err)
	}
	return nil
}
