package chaos

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/headgate-io/headgate/test/cluster"
)

var (
	length = flag.Duration("chaos.for", time.Minute, "how long faults are drawn, for each shape; a third of it with -short")
	seed   = flag.Uint64("chaos.seed", 0, "what faults are drawn from; 0 draws a seed, which the test tells")
)

func TestMain(m *testing.M) { os.Exit(cluster.Main(m)) }
