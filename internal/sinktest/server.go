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

// product is an S3 server program that tests can run against.
type product struct {
	name   string
	suite  suite.Suite // its variable names the program
	args   func(addr, dir string) []string
	env    []string
	object string // file with the data in an object's directory; "" if the server stores an object as a single file
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

// selectedProduct returns the first product whose program the environment names, and the program.
func selectedProduct() (product, string, bool) {
	for _, p := range products {
		if bin := p.suite.Get(); bin != "" {
			return p, bin, true
		}
	}
	return product{}, "", false
}

// HaveServer reports whether the environment names a real S3 server.
func HaveServer() bool {
	_, _, ok := selectedProduct()
	return ok
}

// Server is a real S3 server process on the loopback interface.
type Server struct {
	URL     string
	Name    string // name of the product
	dir     string
	bin     string
	product product
	cmd     *exec.Cmd
}

// Serve starts a real S3 server with an empty Bucket, which stops at the end of the test.
// If the environment names no server program, it skips the test.
func Serve(t testing.TB) *Server {
	if suite.Minio.Value(t) == "" {
		suite.Versitygw.Require(t)
	}
	Env(t, AccessKey, SecretKey)
	s, err := Launch(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Launch is like Serve, for callers without a testing.TB. It keeps the data in dir, which
// must be empty. The caller must call Kill.
func Launch(dir string) (*Server, error) {
	p, bin, ok := selectedProduct()
	if !ok {
		return nil, errors.New("no S3 server: set TRACESMITH_TEST_VERSITYGW or TRACESMITH_TEST_MINIO to its program")
	}
	s := &Server{URL: "http://" + FreeAddress(), Name: p.name, dir: dir, bin: bin, product: p}
	if err := os.Mkdir(filepath.Join(dir, Bucket), 0o755); err != nil {
		return nil, err
	}
	return s, s.Start()
}

// Data returns the server's file for an object of Bucket. It may also contain the
// server's metadata.
func (s *Server) Data(key string) (string, error) {
	path := filepath.Join(s.dir, Bucket, filepath.FromSlash(key))
	if s.product.object == "" {
		return path, nil
	}
	found := filepath.Join(path, s.product.object) // it contains small objects
	err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "part.") {
			found = path
		}
		return err
	})
	return found, err
}

// RemoveObject removes the files of an object without the server's knowledge.
func (s *Server) RemoveObject(key string) error {
	return os.RemoveAll(filepath.Join(s.dir, Bucket, filepath.FromSlash(key)))
}

// FreeAddress returns a free loopback address. Its port is below the range from which the
// kernel assigns ports, so that it stays free until the server starts or restarts.
func FreeAddress() string {
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			return addr
		}
	}
}

// Start starts the server again after Kill, with the same address and data, and returns
// once it is ready.
func (s *Server) Start() error {
	addr := strings.TrimPrefix(s.URL, "http://")
	s.cmd = exec.Command(s.bin, s.product.args(addr, s.dir)...)
	s.cmd.Env = append(os.Environ(), s.product.env...)
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", s.Name, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if s.ready(ctx) {
			return nil
		}
		time.Sleep(10 * time.Millisecond) // an external process can only be polled
	}
	s.Kill()
	return fmt.Errorf("%s is not ready on %s after 3 minutes", s.Name, addr)
}

// ready reports whether the server is ready. A ready server refuses a request without
// credentials; one that is still starting answers with a server error or not at all.
func (s *Server) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, http.NoBody)
	if err != nil {
		return false
	}
	req.Close = true // so that no connection remains
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
