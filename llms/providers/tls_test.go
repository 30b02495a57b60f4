package providers_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
	"github.com/tracesmith/tracesmith/llms/providers"
)

// serveTLS serves a script over TLS and returns its URL and its self-signed certificate.
func serveTLS(t *testing.T, until time.Time, hosts ...string) (url string, pem []byte) {
	t.Helper()
	cert, pem, err := mock.Certificate(until, hosts...)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(mock.NewHandler(mock.Script{Key: secret, Sessions: []mock.Session{{Turns: []mock.Turn{mocktest.Text("hello")}}}}))
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv.URL + "/v1", pem
}

// newTLSClient returns a client that trusts only the certificate pem, or none if pem is nil.
func newTLSClient(t *testing.T, url string, pem []byte) *providers.OpenAI {
	t.Helper()
	pool := x509.NewCertPool()
	if pem != nil && !pool.AppendCertsFromPEM(pem) {
		t.Fatal("no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := providers.NewOpenAI(providers.OpenAIConfig{Endpoint: providers.Endpoint{BaseURL: url, Model: "m", APIKey: "env:KEY", Timeout: "30s"}, Dialect: providers.DefaultDialect()},
		llms.Deps{Transport: transport, Getenv: func(string) string { return secret }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Errors about a certificate or a wrong scheme say what to do. Their class is unreachable, because no
// such call can have been billed.
func TestCertificateErrorsHaveARemedy(t *testing.T) {
	later, ask := time.Now().Add(time.Hour), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}}
	good, pem := serveTLS(t, later, "127.0.0.1")
	if r, err := newTLSClient(t, good, pem).Chat(t.Context(), ask); err != nil || r.Reply.Message != "hello" {
		t.Fatalf("a trusted certificate was refused: %v", err)
	}
	elsewhere, elsewherePEM := serveTLS(t, later, "elsewhere.example")
	expired, expiredPEM := serveTLS(t, time.Now().Add(-time.Minute), "127.0.0.1")
	// A server without TLS whose chat answer is the alert that a TLS port sends to a client without TLS.
	plain := mocktest.Serve(t, mock.Script{Key: secret, Sessions: []mock.Session{{Turns: []mock.Turn{{Fault: &mock.Fault{Kind: "tls_port"}}}}}})
	for name, c := range map[string]struct {
		url     string
		pem     []byte
		want    []string
		byCheck bool
	}{
		"unknown authority": {good, nil, []string{"the certificate of " + good + " is not trusted", "set SSL_CERT_FILE to the PEM file"}, true},
		"another name":      {elsewhere, elsewherePEM, []string{"not trusted", "127.0.0.1", "use a name in base_url for which it is valid"}, true},
		"expired":           {expired, expiredPEM, []string{"not trusted", "expired", "needs a new certificate"}, true},
		"https URL of a port without TLS": {strings.Replace(plain.URL, "http:", "https:", 1), nil,
			[]string{"write http:// in base_url"}, true},
		"http URL of a TLS port": {plain.URL, nil, []string{"write https:// in base_url"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := newTLSClient(t, c.url, c.pem)
			_, err := client.Chat(t.Context(), ask)
			errs := []error{err}
			if c.byCheck {
				errs = append(errs, client.Check(t.Context()))
			}
			for _, err := range errs {
				if llms.ClassOf(err) != llms.ClassUnreachable {
					t.Errorf("class %q: %v", llms.ClassOf(err), err)
				}
				for _, want := range c.want {
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("%v\nlacks %q", err, want)
					}
				}
			}
		})
	}
}

// A server that accepts connections but not the TLS handshake is unreachable. It has not billed anything.
func TestUnansweredTLSHandshakeIsUnreachable(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	transport := &http.Transport{TLSHandshakeTimeout: 50 * time.Millisecond}
	url := "https://" + silent.Addr().String() + "/v1"
	c, err := llms.Providers.Build("openai", map[string]any{"base_url": url, "model": "m", "api_key": "env:TEST_KEY"},
		llms.Deps{Getenv: getenv, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Chat(t.Context(), llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}})
	if e := asError(err); e == nil || e.Class != llms.ClassUnreachable || !strings.Contains(e.Message, "TLS handshake timeout: is the server running at "+url) {
		t.Errorf("%v", err)
	}
}
