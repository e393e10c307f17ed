package cluster

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// BinaryVariable names a headgate binary to use instead of building one.
const BinaryVariable = "HEADGATE_BIN"

const (
	headgatePackage = "github.com/headgate-io/headgate/cmd/headgate"
	natsPackage     = "github.com/nats-io/nats-server/v2"
)

// binaryDir is made at most once per process; it goes with [Main].
var binaryDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "headgate-bin-") })

// The binaries are built at most once per process.
var (
	headgateBinary = sync.OnceValues(buildHeadgate)
	skewedBinary   = sync.OnceValues(buildSkewed)
	natsBinary     = sync.OnceValues(func() (string, error) { return build("nats-server", natsPackage) })
)

// clustersAtOnce is how many clusters run in parallel at least: their tests wait
// most of the time.
const clustersAtOnce = 4

// Main runs the tests of a package that starts processes and removes what was
// built for them. It is for TestMain, and returns what to exit with.
func Main(m *testing.M) int {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue && runtime.NumCPU() < clustersAtOnce {
		if err := flag.Set("test.parallel", strconv.Itoa(clustersAtOnce)); err != nil {
			panic(err) // the flag is Go's own
		}
	}
	code := m.Run()
	if dir, err := binaryDir(); err == nil {
		_ = os.RemoveAll(dir) // a temporary folder that stays behind hurts nobody
	}
	return code
}

// Binary is the path of the headgate binary under test.
func Binary(tb testing.TB) string { return built(tb, headgateBinary) }

// SkewedBinary is the same program with a wall clock that is off by what
// [Options.Clocks] says.
func SkewedBinary(tb testing.TB) string { return built(tb, skewedBinary) }

func built(tb testing.TB, of func() (string, error)) string {
	tb.Helper()
	path, err := of()
	if err != nil {
		tb.Fatal(err)
	}
	return path
}

func buildHeadgate() (string, error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return path, nil
	}
	if err := noteSources(); err != nil {
		return "", err
	}
	return build("headgate", headgatePackage)
}

// noteSources looks at every source of the binary. The result of a test is
// remembered for as long as no file changed that it looked at, and what the
// compiler looks at is not seen.
func noteSources() error {
	modfile, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("find the module: %w", err)
	}
	root := filepath.Dir(strings.TrimSpace(string(modfile)))
	for _, room := range []string{"cmd", "invocation", "kvstore", "lifecycle", "ratelimit", "go.mod"} {
		err := filepath.WalkDir(filepath.Join(root, room), func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			_, err = os.Stat(path)
			return err
		})
		if err != nil {
			return fmt.Errorf("look at the sources: %w", err)
		}
	}
	return nil
}

// build makes a binary of a package of this module or of one it requires.
func build(name, pkg string, flags ...string) (string, error) {
	dir, err := binaryDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	cmd := exec.Command("go", append(append([]string{"build", "-o", path}, flags...), pkg)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, out)
	}
	return path, nil
}
