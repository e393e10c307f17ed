package kvstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A data directory has one owner for good and one user at a time.
func TestDataDir_claims(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "data")
	d, err := openDataDir(path, "a", shapeAlone)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDataDir(path, "a", shapeAlone); !errors.Is(err, ErrDataDirInUse) {
		t.Errorf("second user: %v, want ErrDataDirInUse", err)
	}
	d.close()
	if _, err := openDataDir(path, "b", shapeAlone); !errors.Is(err, ErrDataDirNode) {
		t.Errorf("other name: %v, want ErrDataDirNode", err)
	}
	d, err = openDataDir(path, "a", shapeAlone)
	if err != nil {
		t.Fatalf("same name again: %v", err)
	}
	d.close()
}

// A server alone may become a member, and its store is set aside; the way back
// is refused.
func TestDataDir_growsOneWay(t *testing.T) {
	path := t.TempDir()
	d, err := openDataDir(path, "a", shapeAlone)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(d.storeDir(), "jetstream"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.close()

	for range 2 { // the second time nothing is set aside again
		d, err = openDataDir(path, "a", shapeMember)
		if err != nil {
			t.Fatal(err)
		}
		if aside, ok := d.aloneDir(); !ok {
			t.Errorf("nothing at %s", aside)
		}
		if _, err := os.Stat(d.storeDir()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the member does not start empty: %v", err)
		}
		d.close()
	}
	if _, err := openDataDir(path, "a", shapeAlone); !errors.Is(err, ErrDataDirShape) {
		t.Errorf("back to alone: %v, want ErrDataDirShape", err)
	}
}

// A store says at Start what waiting would not mend.
func TestStore_dataDirFaultsFailFast(t *testing.T) {
	cfg := testConfig(t)
	first := startStore(t, cfg)
	awaitJoined(t, first)

	second, err := New(cfg, WithLogger(testLog(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Start(t.Context()); !errors.Is(err, ErrDataDirInUse) {
		t.Errorf("Start on a directory in use: %v, want ErrDataDirInUse", err)
	}
	stopStore(t, first)

	cfg.NodeName = "renamed"
	renamed, err := New(cfg, WithLogger(testLog(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := renamed.Start(t.Context()); !errors.Is(err, ErrDataDirNode) {
		t.Errorf("Start under another name: %v, want ErrDataDirNode", err)
	}
}
