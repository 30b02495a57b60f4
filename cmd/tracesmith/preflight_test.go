package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/internal/mocktest"
	"github.com/tracesmith/tracesmith/llms/mock"
)

// For every API, a wrong address, key or model is found before the first model call.
func TestPreflightBillsNothing(t *testing.T) {
	const key = "sk-right-0a1b2c3d4e5f"
	t.Setenv("RIGHT_KEY", key)
	t.Setenv("WRONG_KEY", "sk-wrong-5f4e3d2c1b0a")
	srv := mocktest.Serve(t, mock.Script{Key: key, Models: []string{"glm-4", "other"}})
	const noServer = "http://127.0.0.1:1/v1" // not a port that was just free: another test may use it now
	for _, provider := range []string{"openai", "anthropic"} {
		for name, c := range map[string]struct {
			url, key, model string
			code            int
			words           string
		}{
			"no key":       {srv.URL, "NO_SUCH_KEY", "glm-4", 4, "NO_SUCH_KEY is not set"},
			"wrong key":    {srv.URL, "WRONG_KEY", "glm-4", 4, "(auth)"},
			"wrong model":  {srv.URL, "RIGHT_KEY", "glm4", 7, "glm4"},
			"wrong host":   {noServer, "RIGHT_KEY", "glm-4", 7, "is the server running"},
			"unknown name": {"http://nowhere.invalid/v1", "RIGHT_KEY", "glm-4", 7, "nowhere.invalid"},
		} {
			t.Run(provider+"/"+name, func(t *testing.T) {
				url := c.url
				if provider == "anthropic" {
					url = strings.TrimSuffix(url, "/v1")
				}
				_, config := writeConfig(t, fmt.Sprintf(`version: 1
tasks: {source: builtin, ids: [stockroom]}
agent: {kind: react}
llm: {provider: %s, model: %s, base_url: %q, api_key: 'env:%s', max_retries: 3}
`, provider, c.model, url, c.key))
				code, out := tracesmith(t, "tracesmith", "run", "-c", config, "--run-dir", t.TempDir()+"/run")
				if code != c.code || !strings.Contains(out, c.words) || strings.Contains(out, "sk-") {
					t.Errorf("exit %d, want %d with %q:\n%s", code, c.code, c.words, out)
				}
			})
		}
	}
	if calls := srv.Log(); len(calls) != 0 {
		t.Errorf("%d calls were made", len(calls))
	}
}
