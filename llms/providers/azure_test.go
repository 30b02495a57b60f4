package providers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms"
	"github.com/tracesmith/tracesmith/llms/mock"
)

// Numbers such as G12 in the names of tests are rows of docs/internals/parity.md.

func azure(t *testing.T, srv *mocktest.Server, with map[string]any) (llms.Client, error) {
	t.Helper()
	cfg := map[string]any{"base_url": strings.TrimSuffix(srv.URL, "/v1"), "model": "gpt", "deployment": "mine", "api_version": "2024-10-21"}
	for k, v := range with {
		cfg[k] = v
	}
	return llms.Providers.Build("azure", cfg, llms.Deps{Getenv: getenv})
}

func azureScript(key string) mock.Script {
	return mock.Script{Key: key, Models: []string{"mine"}, Sessions: []mock.Session{{Turns: []mock.Turn{mocktest.Text("hello")}, Repeat: true}}}
}

// entra starts a token server that issues numbered tokens to clients with the right secret. issued
// counts them.
func entra(t *testing.T) (address string, issued *atomic.Int64) {
	t.Helper()
	issued = &atomic.Int64{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.FormValue("client_secret") != secret || r.URL.Path != "/ten/oauth2/v2.0/token" || r.FormValue("scope") != "res/.default" || r.FormValue("grant_type") != "client_credentials" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":"invalid_client","error_description":"wrong secret %s"}`, r.FormValue("client_secret"))
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": fmt.Sprintf("token-%d", issued.Add(1)), "token_type": "Bearer", "expires_in": 3600})
	}))
	t.Cleanup(srv.Close)
	return srv.URL, issued
}

var hello = llms.Request{Messages: []llms.Message{{Role: "user", Content: "go"}}}

func TestG12AzureKeyAndDeployment(t *testing.T) {
	srv := mocktest.Serve(t, azureScript(secret))
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("  "+secret+" \nnot this\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ref := range []string{"env:TEST_KEY", "file:" + file} {
		c, err := azure(t, srv, map[string]any{"api_key": ref, "api_version": time.Date(2024, 10, 21, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Chat(t.Context(), hello)
		if err != nil || resp.Reply.Message != "hello" || c.Provider() != "azure" || c.Model() != "gpt" {
			t.Errorf("%s: %+v, %v", ref, resp.Reply, err)
		}
		if err := c.(llms.Checker).Check(t.Context()); err != nil {
			t.Error(err)
		}
	}
	c, err := azure(t, srv, map[string]any{"api_key": "env:TEST_KEY", "deployment": "other"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Chat(t.Context(), hello); llms.ClassOf(err) != llms.ClassNotFound {
		t.Errorf("unknown deployment: %v", err)
	}
	refuses := mocktest.Serve(t, azureScript("another"))
	if c, err = azure(t, refuses, map[string]any{"api_key": "env:TEST_KEY"}); err != nil {
		t.Fatal(err)
	}
	if err := c.(llms.Checker).Check(t.Context()); llms.ClassOf(err) != llms.ClassAuth || strings.Contains(err.Error(), secret) {
		t.Errorf("refused key: %v", err)
	}
}

func TestG12AzureTokensAreKeptAndRenewedOnce(t *testing.T) {
	at, issued := entra(t)
	with := map[string]any{"scope": "res/.default", "tenant": "ten", "client_id": "app", "client_secret": "env:TEST_KEY", "authority": at}
	srv := mocktest.Serve(t, azureScript("token-1"))
	c, err := azure(t, srv, with)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := c.Chat(t.Context(), hello); err != nil {
			t.Fatal(err)
		}
	}
	if issued.Load() != 1 {
		t.Errorf("%d tokens requested for three calls", issued.Load())
	}
	// If a token is revoked early, the client requests another one and retries the call.
	revoking := mocktest.Serve(t, azureScript("token-3"))
	if c, err = azure(t, revoking, with); err != nil {
		t.Fatal(err)
	}
	if resp, err := c.Chat(t.Context(), hello); err != nil || resp.Reply.Message != "hello" || issued.Load() != 3 {
		t.Errorf("after %d tokens: %v", issued.Load(), err)
	}
	// If the new token is refused as well, the client returns the error.
	refusing := mocktest.Serve(t, azureScript("no token"))
	if c, err = azure(t, refusing, with); err != nil {
		t.Fatal(err)
	}
	_, err = c.Chat(t.Context(), hello)
	if llms.ClassOf(err) != llms.ClassAuth || issued.Load() != 5 || strings.Contains(err.Error(), "token-") {
		t.Errorf("after %d tokens: %v", issued.Load(), err)
	}
	with["tenant"] = "elsewhere"
	if c, err = azure(t, srv, with); err != nil {
		t.Fatal(err)
	}
	_, err = c.Chat(t.Context(), hello)
	if llms.ClassOf(err) != llms.ClassAuth || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "Entra ID issued no token") {
		t.Errorf("no token: %v", err)
	}
	// The status shows that no model was called, so the call costs nothing.
	if e, ok := errors.AsType[*llms.Error](err); !ok || e.Status != http.StatusUnauthorized {
		t.Errorf("no token: %#v", err)
	}
	with["authority"] = "http://127.0.0.1:1"
	if c, err = azure(t, srv, with); err != nil {
		t.Fatal(err)
	}
	if err := c.(llms.Checker).Check(t.Context()); llms.ClassOf(err) != llms.ClassUnreachable {
		t.Errorf("token server unreachable: %v", err)
	}
}

func TestAzureSettings(t *testing.T) {
	srv := mocktest.Serve(t, azureScript(""))
	missing := filepath.Join(t.TempDir(), "none")
	for want, with := range map[string]map[string]any{
		"api_version is missing":       {"api_key": "env:TEST_KEY", "api_version": ""},
		"set either api_key, or scope": {},
		"client_secret must say where": {"scope": "s", "client_secret": "plain"},
		"tenant is missing":            {"scope": "s", "client_secret": "env:TEST_KEY", "client_id": "x"},
		"variable NOPE is not set":     {"scope": "s", "client_secret": "env:NOPE", "client_id": "x", "tenant": "x"},
		"api_key: reading the secret":  {"api_key": "file:" + missing},
	} {
		if _, err := azure(t, srv, with); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
