package e2e

import (
	"flag"
	"os"
	"testing"

	"github.com/headgate-io/headgate/test/cluster"
)

// long runs what takes minutes at its full length.
var long = flag.Bool("long", false, "run the long measurements at their full length")

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }
