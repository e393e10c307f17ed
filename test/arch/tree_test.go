package arch

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// module is the path before every import of our own.
const module = "github.com/headgate-io/headgate"

// pkg is one package as `go list -json` tells it.
type pkg struct {
	ImportPath   string
	Dir          string
	GoFiles      []string
	Imports      []string
	TestGoFiles  []string
	TestImports  []string
	XTestGoFiles []string
	XTestImports []string
}

// name is the package's path inside the module: "ratelimit/counter".
func (p pkg) name() string { return inside(p.ImportPath) }

// testImports are those of all its test files.
func (p pkg) testImports() []string { return slices.Concat(p.TestImports, p.XTestImports) }

// inside cuts the module off an import path.
func inside(path string) string { return strings.TrimPrefix(strings.TrimPrefix(path, module), "/") }

// ours reports whether an import path is of this module.
func ours(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }

// under reports whether a package is dir or below it.
func under(name, dir string) bool { return name == dir || strings.HasPrefix(name, dir+"/") }

// standard reports whether an import path is of the standard library: only
// there the first element has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// root is the module's directory.
const root = "../.."

var listOnce = sync.OnceValues(list)

// packages are all packages of the module.
func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listOnce()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func list() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,Imports,TestGoFiles,TestImports,XTestGoFiles,XTestImports", "./...")
	cmd.Dir = root
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(err, errors.New(complaints.String()))
	}
	var all []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// parse reads the named files of a package.
func (p pkg) parse(t *testing.T, names []string, mode parser.Mode) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	set, files := token.NewFileSet(), make(map[string]*ast.File, len(names))
	for _, name := range names {
		file, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, mode)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = file
	}
	return set, files
}
