// Package mocktest starts scripted model servers for tests.
package mocktest

import (
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/tracesmith/tracesmith/llms/mock"
)

// Server is a scripted model server on a free loopback port.
type Server struct {
	*mock.Handler
	// URL is the base_url of the server, with /v1.
	URL string
	// Close breaks all connections, including stalled ones, and waits until every
	// request has ended. Later calls do nothing.
	Close func()
}

// Listen starts a server.
func Listen(s mock.Script) *Server {
	h := mock.NewHandler(s)
	web := httptest.NewServer(h)
	return &Server{Handler: h, URL: web.URL + "/v1", Close: sync.OnceFunc(func() {
		web.CloseClientConnections()
		web.Close()
	})}
}

// Serve starts a server for one test and ends it with the test. The test fails
// for each problem that the server found (see mock.Handler.Problems).
func Serve(t testing.TB, s mock.Script) *Server {
	t.Helper()
	srv := Listen(s)
	t.Cleanup(func() {
		srv.Close()
		for _, p := range srv.Problems() {
			t.Errorf("scripted model server: %s", p)
		}
	})
	return srv
}

// Text returns a turn with a text.
func Text(content string) mock.Turn { return mock.Turn{Content: &content} }

// Tool returns a turn with one tool call.
func Tool(name string, arguments map[string]any) mock.Turn {
	return mock.Turn{ToolCalls: []mock.Call{{Name: name, Arguments: arguments}}}
}
