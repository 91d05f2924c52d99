package quantd

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// The suite sets the addresses of server and vectors; a test that needs one of them is skipped without it (go test alone), but never in the
// suite, which counts a skipped test as a failure.
func needs(t *testing.T, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		t.Skipf("%s is not set: run ./tests/run.sh clients", variable)
	}
	return value
}

// No test takes this long on any machine: a call that hangs fails here.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func dial(t *testing.T, address string, options ...grpc.DialOption) *Client {
	t.Helper()
	client, err := Dial(address, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// A client of the server that the suite has started.
func shared(t *testing.T) *Client {
	t.Helper()
	return dial(t, needs(t, "QUANTD_ADDRESS"))
}

// A server for this test alone.
type server struct {
	address string
	process *os.Process
	ended   <-chan struct{}
}

func (s *server) kill() {
	s.process.Kill()
	<-s.ended
}

func start(t *testing.T, flags ...string) *server {
	t.Helper()
	binary := needs(t, "TEST_QUANTD")
	folder := t.TempDir()
	ready := filepath.Join(folder, "ready.json")
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, append([]string{"--listen=127.0.0.1:0", "--http_listen=127.0.0.1:0", "--ready_file=" + ready}, flags...)...)
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "QUANTD_") {
			command.Env = append(command.Env, variable)
		}
	}
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { command.Wait(); close(ended) }()
	running := &server{process: command.Process, ended: ended}
	t.Cleanup(func() {
		running.kill()
		log.Close()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var addresses struct{ GRPC []string }
		if content, err := os.ReadFile(ready); err == nil && json.Unmarshal(content, &addresses) == nil {
			running.address = addresses.GRPC[0]
			return running
		}
		select {
		case <-ended:
		default:
			if time.Now().Before(deadline) {
				continue
			}
		}
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("quantd %q does not start:\n%s", flags, said)
	}
}

// The error of a call that must fail in this way.
func failure(t *testing.T, err error, code codes.Code) *Error {
	t.Helper()
	result, ok := FromError(err)
	if !ok || result.Code != code {
		t.Fatalf("%v, not %s", err, code)
	}
	return result
}
