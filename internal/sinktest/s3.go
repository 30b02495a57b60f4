package sinktest

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// Credentials and bucket of the S3 servers of this package.
const (
	AccessKey = "tracesmith"
	SecretKey = "tracesmith-secret"
	Bucket    = "traces"
)

// Env sets static credentials for the SDK and hides the machine's own configuration from
// it. Call it before opening a store.
func Env(t testing.TB, access, secret string) {
	for k, v := range map[string]string{
		"AWS_ACCESS_KEY_ID": access, "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "", "AWS_CONFIG_FILE": os.DevNull,
		"AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_CA_BUNDLE": "", "AWS_REGION": "us-east-1",
	} {
		t.Setenv(k, v)
	}
}

// Fake starts an in-process S3 server with an empty Bucket and returns its URL. It checks
// neither credentials nor checksums, nor conditions on multipart puts; tests of these need
// Serve. wrap, if not nil, wraps its handler.
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
