package sinktest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/suite"
)

// product is a server that tests can be run against, one program each.
type product struct {
	name   string
	suite  suite.Suite // its variable names the program
	args   func(addr, dir string) []string
	env    []string
	object string // of an object's directory, the file that holds its data; "": it is one file
}

var products = []product{
	{
		name: "versitygw", suite: suite.Versitygw,
		args: func(addr, dir string) []string { return []string{"--quiet", "--port", addr, "posix", dir} },
		env:  []string{"ROOT_ACCESS_KEY=" + AccessKey, "ROOT_SECRET_KEY=" + SecretKey},
	},
	{
		name: "minio", suite: suite.Minio,
		args: func(addr, dir string) []string {
			return []string{"server", "--quiet", "--address", addr, "--console-address", "127.0.0.1:0", dir}
		},
		env:    []string{"MINIO_ROOT_USER=" + AccessKey, "MINIO_ROOT_PASSWORD=" + SecretKey, "MINIO_BROWSER=off", "MINIO_UPDATE=off"},
		object: "xl.meta",
	},
}

// chosen is the product whose program the environment names.
func chosen() (product, string, bool) {
	for _, p := range products {
		if bin := p.suite.Get(); bin != "" {
			return p, bin, true
		}
	}
	return product{}, "", false
}

// HaveServer tells whether the environment names a real S3 server.
func HaveServer() bool {
	_, _, ok := chosen()
	return ok
}

// Server is a process of a real S3 server on loopback.
type Server struct {
	URL  string
	Name string // of the product
	dir  string
	bin  string
	as   product
	cmd  *exec.Cmd
}

// Serve starts a real S3 server with an empty Bucket, stopped when the test ends:
// the first of products whose program the environment names. Where none is named
// the test is skipped, loudly.
func Serve(t testing.TB) *Server {
	if suite.Minio.Value(t) == "" {
		suite.Versitygw.Need(t)
	}
	Env(t, AccessKey, SecretKey)
	s, err := Launch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Launch is Serve for callers without a testing.TB. The data lie in dir, which is
// empty; whoever calls it calls Kill.
func Launch(dir string) (*Server, error) {
	p, bin, ok := chosen()
	if !ok {
		return nil, errors.New("no S3 server is named")
	}
	s := &Server{URL: "http://" + FreeAddress(), Name: p.name, dir: dir, bin: bin, as: p}
	if err := os.Mkdir(filepath.Join(dir, Bucket), 0o755); err != nil {
		return nil, err
	}
	return s, s.Start()
}

// Data is the server's own file that holds an object of Bucket, with what the
// server keeps beside the content.
func (s *Server) Data(key string) (string, error) {
	path := filepath.Join(s.dir, Bucket, filepath.FromSlash(key))
	if s.as.object == "" {
		return path, nil
	}
	found := filepath.Join(path, s.as.object) // small objects stand in it
	err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "part.") {
			found = path
		}
		return err
	})
	return found, err
}

// Lose removes an object behind the server's back.
func (s *Server) Lose(key string) error {
	return os.RemoveAll(filepath.Join(s.dir, Bucket, filepath.FromSlash(key)))
}

// FreeAddress is one of loopback that nobody listens on, below those that the kernel
// gives away: nobody takes it before the server does, or while that is dead.
func FreeAddress() string {
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
}

// Start runs the server again after Kill, on the same address and data, and
// returns when it serves.
func (s *Server) Start() error {
	addr := strings.TrimPrefix(s.URL, "http://")
	s.cmd = exec.Command(s.bin, s.as.args(addr, s.dir)...)
	s.cmd.Env = append(os.Environ(), s.as.env...)
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", s.Name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if s.serves(ctx) {
			return nil
		}
		time.Sleep(10 * time.Millisecond) // polling a foreign process
	}
	s.Kill()
	return fmt.Errorf("%s does not serve on %s", s.Name, addr)
}

// serves: whoever has no credentials is refused by a server that is ready, and
// hears of its troubles from one that listens already.
func (s *Server) serves(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, http.NoBody)
	if err != nil {
		return false
	}
	req.Close = true // leaves nothing behind
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode < http.StatusInternalServerError
}

// Kill ends the server with SIGKILL.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
