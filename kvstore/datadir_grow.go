package kvstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// aloneDirName is where the store of a server that was alone waits to be
// copied into the cluster that it became a member of.
const aloneDirName = "store-alone"

// aloneDir is the store to copy into the cluster, if there is one.
func (d *dataDir) aloneDir() (path string, ok bool) {
	path = filepath.Join(d.path, aloneDirName)
	_, err := os.Stat(path)
	return path, err == nil
}

// outgrow sets the store of a server that was alone aside, so that the member
// starts empty: it would take the old buckets for orphans of its cluster and
// delete them. What was set aside is copied in once the cluster has formed.
// Each step may be the last before a crash and can be made again.
func (d *dataDir) outgrow(want dataDirOwner) error {
	aside := filepath.Join(d.path, aloneDirName)
	err := os.Rename(d.storeDir(), aside)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("kvstore: set the store of a server alone aside: %w", err)
	}
	return d.writeOwner(want)
}
