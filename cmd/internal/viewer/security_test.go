package viewer_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tracesmith/tracesmith/cmd/internal/viewer"
	"github.com/tracesmith/tracesmith/internal/sinktest"
)

// Every page shows hostile text as text: no tag, no control character and no bidirectional override
// of an episode reaches the browser. TestBrowser opens the same pages in a real one.
func TestHostileTextsStayText(t *testing.T) {
	staged, unresolved := hostile(), hostile()
	unresolved.Episode.Resolved = new(false)
	s := open(t, "", runDir(t, staged), runDir(t, unresolved))
	address := "/t/1/" + staged.Episode.EpisodeID
	for _, path := range []string{
		"/", address, address + "/sample?gold=1", "/stats/1", "/?q=" + "%3Cscript%3E", "/?e=%3Cscript%3E%1b", "/?sort=%3Cscript%3E", "/compare?by=bug_kind,repo",
		"/compare?all=1&by=%3Cscript%3E%1b", "/?in=steps&q=%3Cscript%3E", "/?in=steps&q=%1b", address + "?list=q%3D%253Cscript%253E%1b%22",
	} {
		wantHarmless(t, path, page(t, s, path))
	}
	wantText(t, page(t, s, "/compare"), "Resolved only by A", "&lt;script&gt;")
	wantText(t, page(t, s, "/?in=steps&q=%3Cscript%3E"), "<mark>&lt;script&gt;</mark>")
	wantText(t, page(t, s, address), "␛[31mred", "␀", "⟨U&#43;202E⟩", "&lt;script&gt;")
}

// wantHarmless checks that a page contains nothing that the attack contains.
func wantHarmless(t *testing.T, path, body string) {
	t.Helper()
	for _, forbidden := range []string{"<script>", "<img", "onerror=\"", "<svg onload", "href=\"javascript", "<base", "http-equiv=\"refresh", "\x1b", "\x00", "\x07", "\r", "\u202e"} {
		if at := strings.Index(body, forbidden); at >= 0 {
			t.Errorf("%s contains %q: …%q…", path, forbidden, body[max(0, at-60):min(len(body), at+60)])
		}
	}
}

func TestHeadersForbidEverythingElse(t *testing.T) {
	s := open(t, "", runDir(t, sinktest.Episode("run-a", 0)))
	for _, path := range []string{"/", "/version", "/assets/app.js", "/assets/style.css", "/nothing", "/api/v1/", "/compare", "/jobs", "/assets/pages.css"} {
		h := get(t, s, path).Header()
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'; style-src 'self'; script-src 'self'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", path, csp)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: headers %v", path, h)
		}
	}
	for _, path := range []string{"/assets/app.js", "/assets/style.css"} {
		if w := get(t, s, path); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", path, w.Code)
		}
	}
}

// A web page of another site can make its own name point to this machine, but its requests carry
// that name.
func TestOtherHostsAreRefused(t *testing.T) {
	s := open(t, "", runDir(t, sinktest.Episode("run-a", 0)))
	for host, want := range map[string]int{
		"127.0.0.1:8080": 200, "localhost": 200, "localhost:99": 200, "[::1]:8080": 200, "[::1]": 200,
		"attacker.invalid": 421, "attacker.invalid:8080": 421, "localhost.attacker.invalid": 421, "127.0.0.1.attacker.invalid:80": 421, "0.0.0.0:8080": 421, "": 421,
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Host = host
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("host %q: status %d, want %d", host, w.Code, want)
		}
	}
}

func TestTokenIsNeededAndBecomesACookie(t *testing.T) {
	token := viewer.NewToken()
	s := open(t, token, runDir(t, sinktest.Episode("run-a", 0)))
	do := func(path string, change func(*http.Request)) *http.Response {
		r := httptest.NewRequest(http.MethodGet, "http://build.example:8080"+path, nil)
		change(r)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Result()
	}
	nothing := func(*http.Request) {}
	for _, path := range []string{"/", "/version", "/assets/app.js", "/?token=wrong", "/healthz"} {
		if r := do(path, nothing); r.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s without the token: status %d", path, r.StatusCode)
		}
	}
	r := do("//attacker.invalid/?q=x&token="+token, nothing)
	cookies := r.Cookies()
	if r.StatusCode != http.StatusSeeOther || r.Header.Get("Location") != "/attacker.invalid/?q=x" || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("status %d, headers %v", r.StatusCode, r.Header)
	}
	if r := do("/", func(r *http.Request) { r.AddCookie(cookies[0]) }); r.StatusCode != http.StatusOK || !strings.Contains(readAll(t, r.Body), "inst-0") {
		t.Errorf("with the cookie: status %d", r.StatusCode)
	}
	if r := do("/api/v1/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }); r.StatusCode != http.StatusOK {
		t.Errorf("with the header: status %d", r.StatusCode)
	}
	if r := do("/api/v1/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token+"x") }); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("with a wrong header: status %d", r.StatusCode)
	}
}
