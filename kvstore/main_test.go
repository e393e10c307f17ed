package kvstore

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"
)

// externalEnv makes this test binary run a NATS server instead of tests, so that
// a server in a process of its own can be killed.
const externalEnv = "HEADGATE_TEST_EXTERNAL"

func TestMain(m *testing.M) {
	if spec := os.Getenv(externalEnv); spec != "" {
		runServer(spec)
	}
	// A server that stops while its cluster still moves a stream about may leave
	// these loops of its own behind. They are not ours to wait for.
	const natsServer = "github.com/nats-io/nats-server/v2/server"
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction(natsServer+".(*fileStore).flushStreamStateLoop"),
		goleak.IgnoreTopFunction(natsServer+"/ats.Register.func1"))
}

// serverSpec is what a server process is told.
type serverSpec struct {
	Port     int
	StoreDir string
}

// runServer serves until the process is killed, or its parent goes away.
func runServer(spec string) {
	var s serverSpec
	if err := json.Unmarshal([]byte(spec), &s); err != nil {
		panic(err)
	}
	srv, err := server.NewServer(&server.Options{
		ServerName: "external", Host: "127.0.0.1", Port: s.Port,
		JetStream: true, StoreDir: s.StoreDir, NoSigs: true, NoLog: true,
	})
	if err != nil {
		panic(err)
	}
	srv.Start()
	if !srv.ReadyForConnections(testPatience) {
		panic("server takes no connections")
	}
	fmt.Println("ready")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n') // until the parent is gone
	os.Exit(0)
}

// serverProcess is a NATS server in a process of its own.
type serverProcess struct {
	t   testing.TB
	cmd *exec.Cmd
	in  *os.File // closed to end it
}

// startProcess starts a server process and waits until it serves.
func startProcess(t testing.TB, s serverSpec) *serverProcess {
	t.Helper()
	spec, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := &serverProcess{t: t, cmd: exec.Command(os.Args[0]), in: w}
	p.cmd.Env = append(os.Environ(), externalEnv+"="+string(spec))
	p.cmd.Stdin, p.cmd.Stderr = r, os.Stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || strings.TrimSpace(line) != "ready" {
		t.Fatalf("server process said %q: %v", line, err)
	}
	return p
}

// kill ends the process with SIGKILL. It may be called again.
func (p *serverProcess) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // killed is what it says
	_ = p.in.Close()
}
