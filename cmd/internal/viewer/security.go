package viewer

import (
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"github.com/tracesmith/tracesmith/schemas"
)

// policy is the Content-Security-Policy of all pages: the browser may load the viewer's own style
// sheet and script, and nothing else.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// cookie returns the name of the cookie that holds the token after the first request. Viewers on
// different ports of one machine share cookies, so each has a name of its own.
func (s *Server) cookie() string { return "tracesmith_view_" + schemas.HashBytes([]byte(s.token))[:12] }

// NewToken returns a token that cannot be guessed.
func NewToken() string { return rand.Text() }

// ServeHTTP implements http.Handler. Without a token, it answers only requests that name this
// machine as their host: a web page of another site that makes its name point here (DNS rebinding)
// sends that name.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if s.token == "" && !namesLoopback(r.Host) {
		http.Error(w, "this server answers only requests to localhost: open it under the address that tracesmith view printed", http.StatusMisdirectedRequest)
		return
	}
	if s.token != "" && !s.authorized(w, r) {
		return
	}
	http.NewCrossOriginProtection().Handler(s.mux).ServeHTTP(w, r)
}

// namesLoopback reports whether the host of a request is a loopback address or localhost, with
// any port: a tunnel may use another one.
func namesLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || host == "127.0.0.1" || strings.Trim(host, "[]") == "::1"
}

// authorized reports whether a request presents the token. A token in the address moves into a
// cookie, so that it is not part of links. If the request must not go on, it has been answered.
func (s *Server) authorized(w http.ResponseWriter, r *http.Request) bool {
	given := r.URL.Query().Get("token")
	if given != "" && s.isToken(given) {
		http.SetCookie(w, &http.Cookie{Name: s.cookie(), Value: given, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
		to := *r.URL
		values := to.Query()
		values.Del("token")
		to.RawQuery = values.Encode()
		http.Redirect(w, r, "/"+strings.TrimLeft(to.RequestURI(), "/"), http.StatusSeeOther)
		return false
	}
	if c, err := r.Cookie(s.cookie()); err == nil && s.isToken(c.Value) {
		return true
	}
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && s.isToken(bearer) {
		return true
	}
	http.Error(w, "this server needs the token in the address that tracesmith view printed", http.StatusUnauthorized)
	return false
}

func (s *Server) isToken(given string) bool {
	return subtle.ConstantTimeCompare([]byte(given), []byte(s.token)) == 1
}
