package chart

import (
	"flag"
	"os"
	"testing"

	"github.com/headgate-io/headgate/test/cluster"
)

// update writes generated files instead of comparing them.
var update = flag.Bool("update", false, "write what is generated instead of comparing it")

// Where things are, from here.
const (
	chartDir   = "../../helm/headgate"
	dockerfile = "../../cmd/headgate/Dockerfile"
)

func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "headgate-helm-")
	if err != nil {
		panic(err)
	}
	helmDir = dir
	code := cluster.Main(m)
	_ = os.RemoveAll(dir) // a temporary folder that stays behind hurts nobody
	os.Exit(code)
}
