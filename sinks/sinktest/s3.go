package sinktest

import (
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Credentials of the servers below.
const (
	AccessKey = "tracesmith"
	SecretKey = "tracesmith-secret"
	Bucket    = "traces"
)

// Env gives the SDK static credentials and keeps it away from the machine's own
// configuration. Call it before opening a store.
func Env(t testing.TB, access, secret string) {
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_CA_BUNDLE": "", "AWS_REGION": "us-east-1",
	} {
		t.Setenv(k, v)
	}
}

// Fake starts an in-process S3 with an empty Bucket and returns its URL. It
// checks neither credentials nor checksums, nor conditions on multipart puts:
// claims about those need Versitygw. wrap, if not nil, stands in front of it.
func Fake(t testing.TB, wrap func(http.Handler) http.Handler) string {
	Env(t, AccessKey, SecretKey)
	backend := s3mem.New()
	if err := backend.CreateBucket(Bucket); err != nil {
		t.Fatal(err)
	}
	handler := gofakes3.New(backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	if wrap != nil {
		handler = wrap(handler)
	}
	srv := httptest.NewUnstartedServer(handler)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

// Server is a versitygw process.
type Server struct {
	URL string
	dir string
	bin string
	cmd *exec.Cmd
}

// Versitygw starts a real S3 server on loopback with an empty Bucket, stopped
// when the test ends. Its binary is named by TRACESMITH_TEST_VERSITYGW; without
// it the test is skipped, loudly.
func Versitygw(t testing.TB) *Server {
	bin := os.Getenv("TRACESMITH_TEST_VERSITYGW")
	if bin == "" {
		t.Skip("NOT TESTED against a real S3 server: set TRACESMITH_TEST_VERSITYGW to a versitygw binary")
	}
	Env(t, AccessKey, SecretKey)
	s := &Server{dir: t.TempDir(), bin: bin}
	if err := os.Mkdir(s.dir+"/"+Bucket, 0o755); err != nil {
		t.Fatal(err)
	}
	s.URL = "http://" + FreeAddress()
	s.Start(t)
	t.Cleanup(s.Kill)
	return s
}

// Path is the server's own file of an object in Bucket.
func (s *Server) Path(key string) string {
	return filepath.Join(s.dir, Bucket, filepath.FromSlash(key))
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

// Start runs the server again after Kill, on the same address and data.
func (s *Server) Start(t testing.TB) {
	addr := strings.TrimPrefix(s.URL, "http://")
	s.cmd = exec.Command(s.bin, "--quiet", "--port", addr, "posix", s.dir)
	s.cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	if err := s.cmd.Start(); err != nil {
		t.Fatal(fmt.Errorf("starting versitygw: %w", err))
	}
	deadline := time.Now().Add(3 * time.Minute)
	for time.Now().Before(deadline) {
		if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			c.Close()
			return
		}
		time.Sleep(10 * time.Millisecond) // polling a foreign process
	}
	t.Fatal("versitygw does not listen on " + addr)
}

// Kill ends the server with SIGKILL.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
