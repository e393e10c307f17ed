package cluster

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// clockVariable tells a binary of buildSkewed by how many seconds its wall
// clock is off.
const clockVariable = "CLOCK_OFFSET_SECONDS"

// What buildSkewed changes in the standard library's time package.
const (
	clockImport  = "import (\n"
	clockReading = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {\n\t\treturn Time{uint64(nsec), sec + unixToInternal, Local}"
	clockOffset  = `
var clockOffset = func() (n int64) {
	text, _ := syscall.Getenv("` + clockVariable + `")
	for _, c := range []byte(text) {
		if c >= '0' && c <= '9' {
			n = n*10 + int64(c-'0')
		}
	}
	if len(text) > 0 && text[0] == '-' {
		return -n
	}
	return n
}()
`
)

// buildSkewed makes the same program with a wall clock that is off: the
// standard library's time.Now adds what the environment says, the monotonic
// clock stays as it is. Setting the machine's clock would take privileges, and
// would be the same for all.
func buildSkewed() (string, error) {
	dir, err := binaryDir()
	if err != nil {
		return "", err
	}
	if err := noteSources(); err != nil {
		return "", err
	}
	overlay, err := skewTime(dir)
	if err != nil {
		return "", fmt.Errorf("skew the wall clock: %w", err)
	}
	return build("headgate-skewed", headgatePackage, "-overlay", overlay)
}

// skewTime writes the changed source and the overlay that puts it in place.
func skewTime(dir string) (overlay string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	text := string(source)
	for _, place := range []struct{ old, added string }{
		{clockImport, "\t\"syscall\"\n"},
		{clockReading[:strings.Index(clockReading, "\n")+1], "\tsec += clockOffset\n"},
	} {
		at := strings.Index(text, clockReading)
		if place.old == clockImport {
			at = strings.Index(text, clockImport)
		}
		if at < 0 {
			return "", fmt.Errorf("%s reads the clock in another way than this knows", original)
		}
		at += len(place.old)
		text = text[:at] + place.added + text[at:]
	}
	changed := filepath.Join(dir, "time.go")
	if err := os.WriteFile(changed, []byte(text+clockOffset), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}
